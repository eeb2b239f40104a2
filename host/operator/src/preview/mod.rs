//! Computes the effect of a candidate before the candidate serves. Renders the objects of the cluster with the current
//! policies and with the policies of the candidate, and compares the results. Reads objects only from the memory of the
//! watch, and writes nothing.
//!
//! A preview asks the policies as a pass does, and compares the answers as `policy plan` does ([`crate::plan`]). The
//! threads of low priority do the work, so previews use only processor time that passes do not need. Running previews
//! take turns of a few objects, so that a preview of many objects does not delay the others.
//!
//! | module | content |
//! |---|---|
//! | `changes` | records which objects the watch reports while a preview runs |

mod changes;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream};
use kaos_crds::PreviewInputs;
use kaos_policy::{
    contract::{Reference, ResourceType},
    render::{Rendered, Renderer, Verdict},
};
use serde_json::Value;
use tokio::time::Instant;

pub(crate) use self::changes::Changes;
use crate::{
    catalogue::{
        Kind, Snapshot,
        installed::{EffectOfProposal, Previewer, Proposal},
    },
    offline::{answer_after, is_same},
    plan::{Answers, Around, Effect, FrozenPath, compared},
    reconcile::{Context, decide, is_there},
    timestamps::written,
    watch::{Coverage, ObjectKey, PassLookup, is_guarded},
};

/// The maximum number of times that a preview computes the objects again that changed meanwhile. If further objects
/// change, the preview computes them one last time, and reports them as outdated.
const REPETITIONS: usize = 3;
/// The number of objects that a preview computes before another running preview may continue.
const TURN: usize = 8;
/// The maximum time for which a preview waits until the watch has listed all objects of the affected kinds.
const LONGEST_WAIT: Duration = Duration::from_mins(2);
/// The interval at which a preview checks whether the watch has listed these objects.
const LOOK: Duration = Duration::from_millis(100);
/// The minimum time without progress after which a preview gives up objects whose needs the watch does not have yet.
/// After the operator starts, the watch has the needs of an object only after the first pass over this object.
const PENDING_WAIT: Duration = Duration::from_secs(10);
/// The minimum interval at which a preview tries such objects again.
const PENDING_LOOK: Duration = Duration::from_secs(1);
/// Between two such attempts, a preview waits this many times the duration of the last attempt. So attempts with many
/// objects do not use too much time.
const LOOK_SHARE: u32 = 10;

/// Computes previews from the memory of the watch.
pub(crate) struct CachePreviewer {
    context: Arc<Context>,
    changes: Arc<Changes>,
}

/// A running preview.
struct RunningPreview {
    context: Arc<Context>,
    proposal: Arc<Proposal>,
    /// The affected kinds for which the candidate reads a type that no active policy reads. Maps each kind to this
    /// type.
    ///
    /// The watch does not keep objects of this type.
    unread: Arc<BTreeMap<ResourceType, ResourceType>>,
    effect: Arc<Mutex<Effect>>,
}

/// The result for one object.
enum ForObject {
    /// The object does not count: the candidate does not affect it, or it does not exist any more.
    NotConcerned,
    /// The effect on the object is not known yet, for this reason. A later attempt can succeed.
    Pending(&'static str),
    /// The effect on the object stays unknown, for this reason.
    Unknown(String),
    /// The difference of the object is part of the effect.
    Added,
}

impl CachePreviewer {
    /// Creates a previewer. `changes` records the objects that the watch reports.
    pub(crate) fn new(context: Arc<Context>, changes: Arc<Changes>) -> Self {
        Self { context, changes }
    }
}

impl Previewer for CachePreviewer {
    fn preview(&self, proposal: Proposal) -> BoxFuture<'static, EffectOfProposal> {
        let (context, changes) = (Arc::clone(&self.context), Arc::clone(&self.changes));
        async move {
            let effect = Effect::new(proposal.frozen.iter().map(|path| FrozenPath::new(path)).collect());
            let (proposal, unread, effect) = (Arc::new(proposal), Arc::default(), Arc::new(Mutex::new(effect)));
            RunningPreview { context, proposal, unread, effect }.run(&changes).await
        }
        .boxed()
    }
}

impl RunningPreview {
    async fn run(mut self, changes: &Changes) -> EffectOfProposal {
        let kinds = self.followed().await;
        self.unread = Arc::new(unread(&self.proposal.after, &kinds, &self.context.access.watch.coverage()));
        let (recording, mut pending) = (changes.record(), Vec::new());
        for of in &kinds {
            pending.extend(self.compute(self.context.access.watch.keys(of)).await);
        }
        self.until_known(pending).await;
        let (mut repeated, mut outdated) = (0, BTreeSet::new());
        for repetition in 0..=REPETITIONS {
            outdated.extend(recording.take().into_iter().filter(|key| kinds.contains(&key.of)));
            if outdated.is_empty() {
                break;
            }
            // After the last repetition, keep these objects in `outdated`, because they may change once more.
            repeated += outdated.len();
            self.compute(outdated.iter().cloned().collect()).await;
            if repetition < REPETITIONS {
                outdated.clear();
            }
        }
        let inputs = PreviewInputs {
            at: Some(written(self.context.access.clock.now())),
            replaces: self.proposal.replaces.clone(),
            together: self.proposal.together.clone(),
            basis: Some(self.proposal.basis.clone()),
            repeated: i64::try_from(repeated).unwrap_or(i64::MAX),
            outdated: i64::try_from(outdated.len()).unwrap_or(i64::MAX),
        };
        let Self { context, effect, .. } = self;
        let sum = move || {
            let effect = std::mem::take(&mut *lock(&effect));
            let frozen_changes =
                effect.frozen_changes().into_iter().map(|(path, objects)| (path.to_owned(), objects)).collect();
            EffectOfProposal { preview: effect.preview(inputs), frozen_changes }
        };
        context.runner.processors.run_low_priority(false, sum).await
    }

    /// Waits until the watch has listed all objects of the kinds whose policies differ. Returns these kinds. If the
    /// watch cannot list all objects of a kind, sets the effect on this kind to unknown.
    async fn followed(&mut self) -> BTreeSet<ResourceType> {
        let watch = self.context.access.watch.clone();
        let kinds: BTreeSet<ResourceType> =
            Snapshot::replaced(&self.proposal.before, &self.proposal.after).into_iter().map(|it| it.of).collect();
        let coverage = watch.coverage();
        let is_followed = |of: &ResourceType| self.proposal.before.of(of).is_some() || coverage.is_primary(of);
        let (kinds, unseen): (BTreeSet<_>, BTreeSet<_>) = kinds.into_iter().partition(is_followed);
        for of in &unseen {
            let why = "no policy answers for this kind yet, so the operator does not watch its objects: their number \
                       is unknown";
            lock(&self.effect).set_kind_unknown(of, why);
        }
        let unlisted = |of: &ResourceType| {
            let is_watched = watch.coverage().is_primary(of);
            let not_watched = (!is_watched).then(|| "the operator does not watch the objects of this kind".to_owned());
            not_watched.or_else(|| watch.waiting_for(of).into_iter().next())
        };
        // Limit the wait: otherwise, a type that the operator cannot list would stop all previews.
        let began = Instant::now();
        while kinds.iter().any(|of| unlisted(of).is_some()) && began.elapsed() < LONGEST_WAIT {
            tokio::time::sleep(LOOK).await;
        }
        for of in &kinds {
            if let Some(why) = unlisted(of).or_else(|| watch.trouble(of)) {
                let why = format!("the operator does not see all objects of this kind: {why}");
                lock(&self.effect).set_kind_unknown(of, &why);
            }
        }
        kinds
    }

    /// Computes pending objects again until the effect on all of them is known. Gives up if no object becomes known for
    /// [`PENDING_WAIT`].
    async fn until_known(&mut self, mut pending: Vec<ObjectKey>) {
        let (mut progress, mut wait) = (Instant::now(), PENDING_LOOK);
        while !pending.is_empty() && progress.elapsed() < PENDING_WAIT.max(wait * 2) {
            tokio::time::sleep(wait).await;
            let (began, many) = (Instant::now(), pending.len());
            pending = self.compute(pending).await;
            if pending.len() < many {
                progress = Instant::now();
            }
            wait = PENDING_LOOK.max(began.elapsed() * LOOK_SHARE);
        }
    }

    /// Computes the effect on these objects, which replaces the earlier effect on them. Returns the objects for which a
    /// later attempt can give another result.
    async fn compute(&self, mut keys: Vec<ObjectKey>) -> Vec<ObjectKey> {
        let Proposal { before, after, .. } = &*self.proposal;
        keys.retain(|key| !after.is_as_in(before, &key.of, &key.namespace, &key.name));
        let processors = &self.context.runner.processors;
        let turns: Vec<Vec<ObjectKey>> = keys.chunks(TURN).map(<[_]>::to_vec).collect();
        let turns = turns.into_iter().map(|turn| {
            let (context, proposal, unread, effect) = (
                Arc::clone(&self.context),
                Arc::clone(&self.proposal),
                Arc::clone(&self.unread),
                Arc::clone(&self.effect),
            );
            let of = turn.first();
            let is_local = of.is_some_and(|key| {
                after.of(&key.of).and_then(|of| of.usual(&key.namespace)).is_some_and(|kind| kind.is_local())
            });
            let is_pending = move |key: &ObjectKey| !add(&effect, &context, &proposal, &unread, key);
            processors.run_low_priority(is_local, move || turn.into_iter().filter(is_pending).collect::<Vec<_>>())
        });
        stream::iter(turns).buffer_unordered(processors.low_priority_threads()).concat().await
    }
}

fn lock(effect: &Mutex<Effect>) -> MutexGuard<'_, Effect> {
    effect.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds the effect on one object. Returns `false` if a later attempt can give another result.
fn add(
    effect: &Mutex<Effect>,
    context: &Context,
    proposal: &Proposal,
    unread: &BTreeMap<ResourceType, ResourceType>,
    key: &ObjectKey,
) -> bool {
    let object = key.reference();
    match for_object(effect, context, proposal, unread, key) {
        ForObject::NotConcerned => lock(effect).forget(&object),
        ForObject::Added => {}
        ForObject::Unknown(why) => lock(effect).set_unknown(&object, &why),
        ForObject::Pending(why) => {
            lock(effect).set_unknown(&object, why);
            return false;
        }
    }
    true
}

fn for_object(
    effect: &Mutex<Effect>,
    context: &Context,
    proposal: &Proposal,
    unread: &BTreeMap<ResourceType, ResourceType>,
    key: &ObjectKey,
) -> ForObject {
    let watch = &context.access.watch;
    let Some(object) = watch.object(key) else { return ForObject::NotConcerned };
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return ForObject::NotConcerned;
    }
    let Some(kinds) = kinds(context, proposal, &object) else { return ForObject::NotConcerned };
    if let Some(of) = unread.get(&key.of) {
        return ForObject::Unknown(format!("the package reads {of}, but the operator does not watch this type yet"));
    }
    let lookup = watch.lookup();
    let mut answers = [None, None];
    for (answer, kind) in answers.iter_mut().zip(kinds) {
        let Some(kind) = kind else { continue };
        *answer = match decided(context, kind, &object, &lookup) {
            Ok(decided) => Some(decided),
            Err(undecided) => return undecided,
        };
    }
    if lookup.is_pending() {
        return ForObject::Pending("a policy needs an object that the operator has not read yet");
    }
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    let children = watch.children(uid);
    let has_plan = answers.iter().flatten().any(|answer| answer.used.planned().is_some());
    if !has_plan && !children.is_empty() {
        return ForObject::Unknown(
            "the object has children, but no policy plans them now, for example because the object waits for another \
             object"
                .to_owned(),
        );
    }
    let live = |child: &Reference| {
        watch.live(&child.of(), child.namespace.as_deref().unwrap_or_default(), &child.name)?.object()
    };
    let settings = answers.iter().flatten().flat_map(|answer| answer.renderer.layers()).map(|(_, it)| it.tree());
    let exists = |child: &Reference| Some(is_there(child, &children));
    let around = Around { live: &live, exists: &exists, settings: settings.collect() };
    let sides = answers.each_ref().map(|answer| answer.as_ref().map(Decided::answers));
    let mut compared = compared(&object, sides, &around);
    let uses_values = lock(effect).uses_values(&compared);
    // Mask without the lock of the effect, because to collect the secret values takes long.
    if uses_values {
        compared.mask();
    }
    lock(effect).add(compared);
    ForObject::Added
}

/// The answer that a pass over the object would use.
struct Decided {
    renderer: Arc<Renderer>,
    used: Arc<Rendered>,
    /// The answer of the newest policies, if an earlier revision answers instead.
    newest: Option<Arc<Rendered>>,
}

impl Decided {
    fn answers(&self) -> Answers<'_> {
        Answers { used: &self.used, newest: self.newest.as_deref() }
    }
}

/// Asks the policies as a pass does, but sends no dry run of the manifests to the API server.
fn decided(
    context: &Context,
    kind: Arc<Kind>,
    object: &Value,
    lookup: &PassLookup,
) -> std::result::Result<Decided, ForObject> {
    // Rendering never fails here: the watch returns only objects of this kind, and the catalogue accepts only settings
    // that fit the policies.
    let unrendered = || ForObject::Unknown("the object could not be rendered".to_owned());
    let mut first = None;
    let ask = |kind: &Kind| {
        let renderer = context.runner.renderer(kind).map_err(|_| unrendered())?;
        let rendered = Arc::new(renderer.render_unstored(object, lookup).map_err(|_| unrendered())?);
        if let Verdict::Failed(failed) = &rendered.verdict
            && failed.failure.says_nothing_of_the_object()
        {
            return Err(ForObject::Pending("a policy had no sandbox or too little time of the processor"));
        }
        first.get_or_insert_with(|| Arc::clone(&rendered));
        Ok((renderer, rendered))
    };
    let (_, (renderer, used)) = decide(kind, |(_, rendered)| rendered, ask)?;
    let newest = first.filter(|first| !Arc::ptr_eq(first, &used));
    Ok(Decided { renderer, used, newest })
}

/// Returns the policies that answer for an object before and after the change. Returns `None` if they are the same.
fn kinds(context: &Context, proposal: &Proposal, object: &Value) -> Option<[Option<Arc<Kind>>; 2]> {
    let Proposal { before, after, .. } = proposal;
    let kinds = [answer_after(before, None, object), answer_after(after, Some(&**before), object)];
    let renderers = kinds.each_ref().map(|kind| kind.as_ref().map(|kind| context.runner.renderer(kind)));
    match (&kinds, &renderers) {
        ([None, None], _) => None,
        ([Some(before), Some(after)], _) if Arc::ptr_eq(before, after) => None,
        ([Some(before), Some(after)], [Some(Ok(one)), Some(Ok(other))])
            if is_same(one, other) && before.refuses_like(after) =>
        {
            None
        }
        _ => Some(kinds),
    }
}

/// Returns the kinds for which the candidate reads a type that no active policy reads. Maps each kind to this type. A
/// pass with the candidate would see the objects of this type, but a preview cannot see them.
fn unread(
    after: &Snapshot,
    kinds: &BTreeSet<ResourceType>,
    coverage: &Coverage,
) -> BTreeMap<ResourceType, ResourceType> {
    let is_unread = |of: &&ResourceType| !coverage.is_read(of) && !coverage.is_primary(of) && !is_guarded(of);
    let of_kind = |kind: &ResourceType| {
        let claims = after.of(kind)?.claims().filter(|claim| claim.primary == *kind);
        let unread = claims.flat_map(|claim| &claim.reads).find(is_unread)?;
        Some((kind.clone(), unread.clone()))
    };
    kinds.iter().filter_map(of_kind).collect()
}
