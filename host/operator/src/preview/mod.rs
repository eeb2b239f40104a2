//! Computes the effect of a candidate before it serves: renders the objects of the cluster with the current policies
//! and with the policies of the candidate, and compares the results. Reads objects only from the memory of the watch,
//! and writes nothing.
//!
//! A pass renders in the same way, and `policy plan` compares in the same way ([`crate::plan`]). Only one preview runs
//! at a time, and its work waits until passes leave a processor free.
//!
//! | module | content |
//! |---|---|
//! | `changes` | records which objects the watch reports while a preview runs |

mod changes;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use kaos_crds::PreviewInputs;
use kaos_policy::{
    contract::{Reference, ResourceType},
    render::Renderer,
};
use serde_json::Value;
use tokio::{sync::Semaphore, time::Instant};

pub(crate) use self::changes::Changes;
use crate::{
    catalogue::{
        Snapshot,
        installed::{EffectOfProposal, Previewer, Proposal},
    },
    offline::{answer_after, is_same},
    plan::{Difference, Effect, FrozenPath, difference},
    processors::Patience,
    reconcile::Context,
    timestamps::written,
    watch::{Coverage, ObjectKey, is_guarded},
};

/// The number of times that a preview computes changed objects again.
const REPETITIONS: usize = 3;
/// The maximum wait for the first lists of the watch.
const LONGEST_WAIT: Duration = Duration::from_mins(2);
/// The interval at which a preview looks whether the watch has listed the objects.
const LOOK: Duration = Duration::from_millis(100);
/// The maximum wait for the next object that becomes known, while the watch does not keep what policies need. After a
/// start of the operator, the first pass over an object makes the watch keep what the policy needs for this object.
const PENDING_WAIT: Duration = Duration::from_secs(10);
/// The minimum interval at which a preview looks for these objects.
const PENDING_LOOK: Duration = Duration::from_secs(1);
/// A preview waits this many times as long as a look takes. With many objects, a look takes long.
const LOOK_SHARE: u32 = 10;

/// Computes previews from the memory of the watch.
pub(crate) struct CachePreviewer {
    context: Arc<Context>,
    changes: Arc<Changes>,
    turn: Arc<Semaphore>,
}

/// A running preview.
struct RunningPreview {
    context: Arc<Context>,
    proposal: Arc<Proposal>,
    /// For each kind, a type that only the candidate reads. The watch does not keep objects of this type.
    unread: Arc<BTreeMap<ResourceType, ResourceType>>,
    effect: Effect,
    patience: Patience,
}

/// The result for one object.
enum ForObject {
    /// The candidate does not concern the object, or the object does not exist.
    NotConcerned,
    /// The operator does not keep an object that a policy needs, but may keep the object soon.
    Pending,
    /// The effect stays unknown.
    Unknown(String),
    Compared(Difference),
}

impl CachePreviewer {
    /// Creates a previewer. `changes` records the objects that the watch reports.
    pub(crate) fn new(context: Arc<Context>, changes: Arc<Changes>) -> Self {
        Self { context, changes, turn: Arc::new(Semaphore::new(1)) }
    }
}

impl Previewer for CachePreviewer {
    fn preview(&self, proposal: Proposal) -> BoxFuture<'static, EffectOfProposal> {
        let (context, changes, turn) = (Arc::clone(&self.context), Arc::clone(&self.changes), Arc::clone(&self.turn));
        async move {
            // Acquiring never fails, because the semaphore is never closed.
            let _turn = turn.acquire_owned().await;
            let effect = Effect::new(proposal.frozen.iter().map(|path| FrozenPath::new(path)).collect());
            let (proposal, unread, patience) = (Arc::new(proposal), Arc::default(), Patience::default());
            RunningPreview { context, proposal, unread, effect, patience }.run(&changes).await
        }
        .boxed()
    }
}

impl RunningPreview {
    async fn run(mut self, changes: &Changes) -> EffectOfProposal {
        let kinds = self.followed().await;
        self.unread = Arc::new(unread(&self.proposal.after, &kinds, &self.context.access.watch.coverage()));
        let (recording, mut pending) = (changes.record(), BTreeSet::new());
        for of in &kinds {
            for key in self.context.access.watch.keys(of) {
                if !self.compute(&key).await {
                    pending.insert(key);
                }
            }
        }
        self.until_known(pending).await;
        let (mut repeated, mut outdated) = (0, BTreeSet::new());
        for repetition in 0..=REPETITIONS {
            outdated.extend(recording.take().into_iter().filter(|key| kinds.contains(&key.of)));
            if outdated.is_empty() || repetition == REPETITIONS {
                break;
            }
            for key in std::mem::take(&mut outdated) {
                repeated += 1;
                self.compute(&key).await;
            }
        }
        let inputs = PreviewInputs {
            at: Some(written(self.context.access.clock.now())),
            replaces: self.proposal.replaces.clone(),
            together: self.proposal.together.clone(),
            repeated,
            outdated: i64::try_from(outdated.len()).unwrap_or(i64::MAX),
        };
        let Self { context, effect, mut patience, .. } = self;
        let sum = move || {
            let frozen_changes =
                effect.frozen_changes().into_iter().map(|(path, objects)| (path.to_owned(), objects)).collect();
            EffectOfProposal { preview: effect.preview(inputs), frozen_changes }
        };
        context.runner.processors.run_when_free(&mut patience, sum).await
    }

    /// Returns the kinds whose policies differ, after the watch has listed their objects. The effect on a kind is
    /// unknown if the watch does not list all objects of the kind.
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
            self.effect.set_unknown(&all_of(of), why);
        }
        let unlisted = |of: &ResourceType| {
            let is_watched = watch.coverage().is_primary(of);
            let not_watched = (!is_watched).then(|| "the operator does not watch the objects of this kind".to_owned());
            not_watched.or_else(|| watch.waiting_for(of).into_iter().next())
        };
        // The wait is limited, so that a type that cannot be listed does not stop all previews.
        let began = Instant::now();
        while kinds.iter().any(|of| unlisted(of).is_some()) && began.elapsed() < LONGEST_WAIT {
            tokio::time::sleep(LOOK).await;
        }
        for of in &kinds {
            if let Some(why) = unlisted(of).or_else(|| watch.trouble(of)) {
                self.effect
                    .set_unknown(&all_of(of), &format!("the operator does not see all objects of this kind: {why}"));
            }
        }
        kinds
    }

    /// Computes pending objects again until the effect on all of them is known. Gives up if no object becomes known for
    /// [`PENDING_WAIT`].
    async fn until_known(&mut self, mut pending: BTreeSet<ObjectKey>) {
        let (mut progress, mut wait) = (Instant::now(), PENDING_LOOK);
        while !pending.is_empty() && progress.elapsed() < PENDING_WAIT.max(wait * 2) {
            tokio::time::sleep(wait).await;
            let (began, many) = (Instant::now(), pending.len());
            for key in std::mem::take(&mut pending) {
                if !self.compute(&key).await {
                    pending.insert(key);
                }
            }
            if pending.len() < many {
                progress = Instant::now();
            }
            wait = PENDING_LOOK.max(began.elapsed() * LOOK_SHARE);
        }
    }

    /// Computes the effect on one object, which replaces the earlier effect on this object. Returns false if a later
    /// attempt can give another result.
    async fn compute(&mut self, key: &ObjectKey) -> bool {
        let Proposal { before, after, .. } = &*self.proposal;
        if let (Some(before), Some(after)) = (before.of(&key.of), after.of(&key.of))
            && after.are_in(&key.namespace, before)
        {
            return true;
        }
        let (context, proposal, unread) =
            (Arc::clone(&self.context), Arc::clone(&self.proposal), Arc::clone(&self.unread));
        let (key, mut effect) = (key.clone(), std::mem::take(&mut self.effect));
        let work = move || {
            let object = key.reference();
            let result = for_object(&context, &proposal, &unread, &key);
            let is_settled = !matches!(result, ForObject::Pending);
            match result {
                ForObject::NotConcerned => effect.forget(&object),
                ForObject::Compared(difference) => effect.set(&difference),
                ForObject::Unknown(why) => effect.set_unknown(&object, &why),
                ForObject::Pending => {
                    effect.set_unknown(&object, "a policy needs an object that the operator has not read yet");
                }
            }
            (effect, is_settled)
        };
        let (effect, is_settled) = self.context.runner.processors.run_when_free(&mut self.patience, work).await;
        self.effect = effect;
        is_settled
    }
}

fn for_object(
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
    let Some([before, after]) = renderers(context, proposal, &object) else { return ForObject::NotConcerned };
    if let Some(of) = unread.get(&key.of) {
        return ForObject::Unknown(format!("the package reads {of}, but the operator does not watch this type yet"));
    }
    let lookup = watch.lookup();
    let render =
        |renderer: Option<Arc<Renderer>>| renderer.map(|renderer| renderer.render(&object, &lookup)).transpose();
    let (Ok(before), Ok(after)) = (render(before), render(after)) else {
        // An error never happens here, because the watch provides only objects of this kind.
        return ForObject::Unknown("the object could not be rendered".to_owned());
    };
    if lookup.is_pending() {
        return ForObject::Pending;
    }
    let live = |child: &Reference| {
        watch.live(&child.of(), child.namespace.as_deref().unwrap_or_default(), &child.name)?.object()
    };
    ForObject::Compared(difference(&object, [before.as_ref(), after.as_ref()], &live))
}

/// Returns the renderers before and after the change. Returns `None` if the change does not concern the object.
fn renderers(context: &Context, proposal: &Proposal, object: &Value) -> Option<[Option<Arc<Renderer>>; 2]> {
    let Proposal { before, after, .. } = proposal;
    let kinds = [answer_after(before, None, object), answer_after(after, Some(&**before), object)];
    if let [Some(before), Some(after)] = &kinds
        && Arc::ptr_eq(before, after)
    {
        return None;
    }
    // An error never happens here, because the catalogue accepts only settings that fit the policies.
    let renderers = kinds.map(|kind| kind.and_then(|kind| context.runner.renderer(&kind).ok()));
    match &renderers {
        [None, None] => None,
        [Some(before), Some(after)] if is_same(before, after) => None,
        _ => Some(renderers),
    }
}

/// Returns, for each kind, a type that the candidate reads and no active policy reads. A pass with the candidate would
/// see objects of this type, and a preview cannot.
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

/// Returns a reference that stands for all objects of a kind.
fn all_of(of: &ResourceType) -> Reference {
    Reference { api_version: of.api_version.clone(), kind: of.kind.clone(), namespace: None, name: "*".to_owned() }
}
