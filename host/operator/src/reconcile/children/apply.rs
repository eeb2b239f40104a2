//! Applies all children of a plan in order, and collects the reasons why children differ from the plan.

use std::{collections::BTreeMap, time::Duration};

use kaos_policy::{
    contract::Reference,
    stamp::{REPLICAS, is_config_map},
};
use serde_json::Value;
use tokio::time::Instant;

use crate::reconcile::{
    access::Access,
    api::named,
    children::child::make,
    children::decide::applied_digest,
    children::final_manifest::{Wanted, held, rank},
    children::memory::ChildrenMemory,
    children::rejected::{Rejected, tried},
    children::replicas::{as_scaled, leave_replicas},
    children::sight::{Done, Made, Sight, sight},
    error::{CallError, Class},
    event_text::EventText,
    mark::{Mark, child_mark},
    subject::Subject,
};
use crate::status::Hindrance;

/// The maximum number of times that a pass decides again about a child, because it found another object than expected.
pub(crate) const LOOKS: u32 = 2;

/// The result of applying the children.
#[derive(Debug, Default)]
pub(crate) struct ChildrenResult {
    /// The reasons why children differ from the plan. Empty if no child differs.
    pub(crate) hindrances: Vec<(Hindrance, String)>,
    /// The error that decides when the operator retries the pass.
    pub(crate) error: Option<CallError>,
    /// The earliest time at which the operator retries a manifest that the server rejected.
    pub(crate) tried_again: Option<Instant>,
    /// The planned children whose names are taken: an object of another owner already has the name.
    pub(crate) conflicts: Vec<Reference>,
    /// Whether the operator must wait until an old child is deleted before it can create the new child.
    pub(crate) waits: bool,
    /// The decisions about children, with their reasons.
    pub(crate) decisions: Vec<String>,
    /// Whether the pass wrote a child.
    pub(crate) wrote: bool,
    /// The children that the pass wrote, as the server returned them.
    pub(crate) answers: BTreeMap<Reference, Value>,
}

impl ChildrenResult {
    /// Returns whether every child matches the plan.
    pub(crate) fn in_full(&self) -> bool {
        self.hindrances.is_empty()
    }

    /// Returns the worst hindrance, and all hindrances as one text. `None` without a hindrance.
    pub(crate) fn hindrance(&self) -> Option<(Hindrance, String)> {
        let worst = self.hindrances.iter().map(|(hindrance, _)| *hindrance).max()?;
        let texts: Vec<&str> = self.hindrances.iter().map(|(_, text)| text.as_str()).collect();
        Some((worst, texts.join("; ")))
    }

    /// Returns the error if a retry can succeed, and `None` otherwise.
    pub(crate) fn passing_error(&self) -> Option<&CallError> {
        self.error.as_ref().filter(|error| !error.is_final())
    }

    fn hindered(&mut self, by: Hindrance, text: String) {
        self.decisions.push(text.clone());
        self.hindrances.push((by, text));
    }

    /// Records that the server rejected a child, and the time of the retry.
    fn rejected(&mut self, until: Instant, error: CallError) {
        self.tried_again = Some(self.tried_again.map_or(until, |soonest| soonest.min(until)));
        self.failed(error);
    }

    /// Records a failed request for a child, or for a step before the children.
    pub(crate) fn failed(&mut self, error: CallError) {
        let by = match error.class {
            Class::Forbidden => Hindrance::NotPermitted,
            Class::Permanent => Hindrance::ApplyFailed,
            Class::Transient(_) | Class::Gone => Hindrance::Retried,
        };
        self.hindered(by, error.to_string());
        // Prefer an error after which a retry may succeed: it decides the time of the retry.
        if self.error.as_ref().is_none_or(CallError::is_final) {
            self.error = Some(error);
        }
    }
}

/// Applies the planned children, rank by rank. Starts a rank only when every child of the lower ranks matches the plan.
pub(crate) async fn apply_all(
    access: &Access,
    longest_retry: Duration,
    subject: &mut Subject<'_>,
    plan: &[Value],
    memory: &mut ChildrenMemory,
) -> ChildrenResult {
    let mut applied = ChildrenResult::default();
    memory.write_limit.tidy(Instant::now());
    let there = access.watch.children(&subject.uid);
    let there = there.iter().map(|child| child_mark(&child.reference())).collect();
    memory.keep(&plan.iter().map(|child| child_mark(&Reference::of_object(child))).collect(), &there);
    let mut ordered: Vec<(u8, &Value)> = plan.iter().map(|manifest| (rank_of(manifest), manifest)).collect();
    ordered.sort_by_key(|(rank, _)| *rank);
    let mut reached = 0;
    for (rank, manifest) in ordered {
        if rank > reached && !applied.in_full() {
            break;
        }
        reached = rank;
        let child = Reference::of_object(manifest);
        let mut seen = sight(&access.watch, &child, &subject.uid, memory);
        // Take the UID from the watch, not from later reads. A rejection depends on this UID until the watch reports
        // the deletion of the child, and the watch reports no deletion of a child that it has never shown.
        let there = seen.live().and_then(|live| live["metadata"]["uid"].as_str()).map(str::to_owned);
        for look in 0.. {
            let live = seen.live();
            let manifest = as_scaled(manifest, &subject.object);
            // Remember the content of a ConfigMap that an earlier operator wrote, because this pass or a later pass
            // compares it with the plan to decide whether a workload must restart.
            if let Some(live) = live.filter(|live| is_config_map(live) && applied_digest(live).is_none()) {
                memory.of(child_mark(&child)).found = Some(held(live));
            }
            let was_like = |config: &Value| {
                memory.get(child_mark(&Reference::of_object(config))).and_then(|child| child.found)
                    == Some(held(config))
            };
            let wanted = Wanted::new(&manifest, &subject.object, live, &was_like, plan);
            // Use a closure, because only a rejection needs this hash.
            let tried = || tried(&wanted, there.as_deref(), &subject.object);
            if let Some(rejected) = memory.get(child_mark(&child)).and_then(|child| child.rejected.as_deref())
                && let Some(error) = rejected.stands(tried(), Instant::now())
            {
                applied.rejected(rejected.until, error);
                break;
            }
            let done = match make(access, &wanted, seen, &subject.uid, memory).await {
                Ok(Made::Found(found)) if look < LOOKS => {
                    seen = found;
                    continue;
                }
                Ok(Made::Found(_)) => Err(comes_and_goes(&child)),
                Ok(Made::Done(Done::Scaled(live))) if look < LOOKS => {
                    match leave_replicas(access, subject, &child, &live).await {
                        Ok(object) => {
                            subject.object = object;
                            applied.wrote = true;
                            seen = Sight::found(Some(live));
                            continue;
                        }
                        Err(error) => Err(error),
                    }
                }
                Ok(Made::Done(done)) => Ok(done),
                Err(error) => Err(error),
            };
            note(&child, tried, done, longest_retry, memory, &mut applied);
            break;
        }
    }
    memory.conflicts = applied.conflicts.iter().cloned().collect();
    // Report the problem in an Event too, because the status does not show it any more after the next successful write.
    if let Some(message) = memory.undone.take() {
        access.tell(&subject.object, &EventText { reason: "ChildUndone".to_owned(), message, warning: true }).await;
    }
    applied
}

fn note(
    child: &Reference,
    tried: impl FnOnce() -> Mark,
    done: Result<Done, CallError>,
    longest_retry: Duration,
    memory: &mut ChildrenMemory,
    applied: &mut ChildrenResult,
) {
    match done {
        Ok(Done::Same) => memory.forget_rejection(child_mark(child)),
        Ok(Done::Written(reason, answer)) => {
            tracing::info!(child = %named(child), reason, "applied");
            applied.decisions.push(format!("{} was applied: {reason}", named(child)));
            applied.wrote = true;
            memory.forget_rejection(child_mark(child));
            applied.answers.insert(child.clone(), answer);
        }
        Ok(Done::Scaled(live)) => {
            let text = format!(
                "{} has {} replicas that another client set, but the annotation {REPLICAS}, which keeps this number, \
                 is gone: find the client that removed the annotation, or set spec.replicas",
                named(child),
                live["spec"]["replicas"]
            );
            applied.hindered(Hindrance::ApplyFailed, text);
        }
        Ok(Done::Foreign(owner)) => {
            let text = format!(
                "{} already exists and belongs to {owner}: delete or rename that {}, or rename this object",
                named(child),
                child.kind
            );
            applied.hindered(Hindrance::OwnershipConflict, text);
            applied.conflicts.push(child.clone());
        }
        Ok(Done::Going) => {
            applied.hindered(
                Hindrance::Retried,
                format!("{} is being deleted and will be created again afterwards", named(child)),
            );
            applied.waits = true;
        }
        Err(error) if error.is_final() => {
            let before = memory.get(child_mark(child)).and_then(|child| child.rejected.as_deref());
            let rejected = Rejected::new(tried(), &error, before, longest_retry, Instant::now());
            applied.rejected(rejected.until, error);
            memory.of(child_mark(child)).rejected = Some(Box::new(rejected));
        }
        Err(error) => applied.failed(error),
    }
}

/// Returns the error for a child that changed or was deleted between decision and write, too often for another attempt.
pub(crate) fn comes_and_goes(child: &Reference) -> CallError {
    let times = LOOKS + 1;
    let message = format!(
        "the API server answered {times} times that the object changed or was deleted meanwhile: find the client that \
         creates and deletes it"
    );
    CallError { what: format!("apply {}", named(child)), class: Class::Transient(None), message }
}

fn rank_of(manifest: &Value) -> u8 {
    rank(&Reference::of_object(manifest).of(), kaos_policy::stamp::pod_template(manifest).is_some())
}
