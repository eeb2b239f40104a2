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

use std::{collections::BTreeSet, sync::Arc, time::Duration};

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
    catalogue::installed::{EffectOfProposal, Previewer, Proposal},
    offline::{answer_after, is_same},
    plan::{Difference, Effect, FrozenPath, difference},
    reconcile::Context,
    timestamps::written,
    watch::ObjectKey,
};

/// The number of times that a preview computes changed objects again.
const REPETITIONS: usize = 3;
/// The maximum wait for the first lists of the watch.
const LONGEST_WAIT: Duration = Duration::from_mins(2);
/// The interval at which a preview looks whether the watch has listed the objects.
const LOOK: Duration = Duration::from_millis(100);
/// The maximum wait for objects that policies need and that the watch does not keep yet. After a start of the operator,
/// the first pass over an object makes the watch keep these objects.
const PENDING_WAIT: Duration = Duration::from_secs(10);
/// The interval at which a preview looks for these objects.
const PENDING_LOOK: Duration = Duration::from_secs(1);

/// Computes previews from the memory of the watch.
pub(crate) struct CachePreviewer {
    context: Arc<Context>,
    changes: Arc<Changes>,
    turn: Arc<Semaphore>,
}

/// A running preview.
struct RunningPreview {
    context: Arc<Context>,
    proposal: Proposal,
    effect: Effect,
}

/// The result for one object.
enum ForObject {
    /// The candidate does not concern the object, or the object does not exist.
    NotConcerned,
    /// The operator does not keep an object that a policy needs.
    Unknown(&'static str),
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
            RunningPreview { context, proposal, effect }.run(&changes).await
        }
        .boxed()
    }
}

impl RunningPreview {
    async fn run(mut self, changes: &Changes) -> EffectOfProposal {
        let (before, watch) = (&self.proposal.before, &self.context.access.watch);
        let is_followed = |of: &ResourceType| before.of(of).is_some() || watch.coverage().is_primary(of);
        let (kinds, unseen): (BTreeSet<_>, BTreeSet<_>) = concerned(&self.proposal).into_iter().partition(is_followed);
        self.until_listed(&kinds).await;
        let (recording, mut pending) = (changes.record(), BTreeSet::new());
        for of in &unseen {
            let all = Reference {
                api_version: of.api_version.clone(),
                kind: of.kind.clone(),
                namespace: None,
                name: "*".to_owned(),
            };
            self.effect.set_unknown(
                &all,
                "no policy answers for this kind yet, so the operator does not watch its objects: their number is \
                 unknown",
            );
        }
        for of in &kinds {
            for key in self.context.access.watch.keys(of) {
                if !self.compute(&key).await {
                    pending.insert(key);
                }
            }
        }
        let began = Instant::now();
        while !pending.is_empty() && began.elapsed() < PENDING_WAIT {
            tokio::time::sleep(PENDING_LOOK).await;
            for key in std::mem::take(&mut pending) {
                if !self.compute(&key).await {
                    pending.insert(key);
                }
            }
        }
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
            repeated,
            outdated: i64::try_from(outdated.len()).unwrap_or(i64::MAX),
        };
        let thawed = self.effect.thawed().into_iter().map(|(path, objects)| (path.to_owned(), objects)).collect();
        EffectOfProposal { preview: self.effect.preview(inputs), thawed }
    }

    /// Waits until the watch has listed these kinds and the types of their claims, as passes do. The wait is limited, so
    /// that a type that cannot be listed does not stop all previews.
    async fn until_listed(&self, kinds: &BTreeSet<ResourceType>) {
        let (watch, began) = (&self.context.access.watch, Instant::now());
        let is_listed = |of: &ResourceType| watch.coverage().is_primary(of) && watch.waiting_for(of).is_empty();
        while !kinds.iter().all(is_listed) && began.elapsed() < LONGEST_WAIT {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Computes the effect on one object, which replaces the earlier effect on this object. Returns whether the effect
    /// is known.
    async fn compute(&mut self, key: &ObjectKey) -> bool {
        let object = key.reference();
        match self.for_object(key).await {
            ForObject::NotConcerned => self.effect.forget(&object),
            ForObject::Compared(difference) => self.effect.set(&difference),
            ForObject::Unknown(why) => {
                self.effect.set_unknown(&object, why);
                return false;
            }
        }
        true
    }

    async fn for_object(&self, key: &ObjectKey) -> ForObject {
        let watch = &self.context.access.watch;
        let Some(object) = watch.object(key) else { return ForObject::NotConcerned };
        if !object["metadata"]["deletionTimestamp"].is_null() {
            return ForObject::NotConcerned;
        }
        let Some([before, after]) = self.renderers(&object) else { return ForObject::NotConcerned };
        let watch = watch.clone();
        let work = move || {
            let lookup = watch.lookup();
            let render = |renderer: Option<Arc<Renderer>>| {
                renderer.map(|renderer| renderer.render(&object, &lookup)).transpose()
            };
            let (Ok(before), Ok(after)) = (render(before), render(after)) else {
                // An error never happens here, because the watch provides only objects of this kind.
                return ForObject::Unknown("the object could not be rendered");
            };
            if lookup.is_pending() {
                return ForObject::Unknown("a policy needs an object that the operator does not keep yet");
            }
            ForObject::Compared(difference(&object, [before.as_ref(), after.as_ref()]))
        };
        self.context.runner.processors.run_when_free(work).await
    }

    /// Returns the renderers before and after the change. Returns `None` if the change does not concern the object.
    fn renderers(&self, object: &Value) -> Option<[Option<Arc<Renderer>>; 2]> {
        let Proposal { before, after, .. } = &self.proposal;
        let kinds = [answer_after(before, None, object), answer_after(after, Some(&**before), object)];
        if let [Some(before), Some(after)] = &kinds
            && Arc::ptr_eq(before, after)
        {
            return None;
        }
        // An error never happens here, because the catalogue accepts only settings that fit the policies.
        let renderers = kinds.map(|kind| kind.and_then(|kind| self.context.runner.renderer(&kind).ok()));
        match &renderers {
            [None, None] => None,
            [Some(before), Some(after)] if is_same(before, after) => None,
            _ => Some(renderers),
        }
    }
}

/// Returns the kinds whose policies differ.
fn concerned(Proposal { before, after, .. }: &Proposal) -> BTreeSet<ResourceType> {
    let is_same = |of: &ResourceType| match (before.of(of), after.of(of)) {
        (Some(now), Some(then)) => then.is_same(now),
        _ => false,
    };
    let kinds = before.kinds().chain(after.kinds()).map(|(of, _)| of);
    kinds.filter(|of| !is_same(of)).cloned().collect()
}
