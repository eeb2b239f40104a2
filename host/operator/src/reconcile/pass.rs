//! One pass over one object: fetch, select, resolve, translate, apply, prune, assess, write, report.

use std::sync::Arc;

use kaos_policy::{
    contract::{Outcome, Reference},
    cut::{NOTE, cut},
    render::{Rendered, Renderer, Verdict},
};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    children::decide::is_going,
    context::Context,
    deletion::finalizers::asked_finalizer,
    ended::{Ended, LOOK_AGAIN, Next},
    error::{CallError, Class},
    execute::Reached,
    memory::{Last, Memory},
    select::Asked,
    status::assess::{Question, Told},
    status::observed_generation,
    status::pass_failed::Halt,
    status::times,
    subject::Subject,
};
use crate::{
    catalogue::{Descent, Without},
    metrics::{PassResult, Readiness, Unserved},
    moments::written,
    watch::{ObjectKey, Served},
};

/// Number of API server failures in a row from which the status shows them. A shorter series is not worth reporting.
const SHOWN_FROM: u32 = 3;

/// The reason why the pass does not execute a plan.
enum Stopped {
    /// The dry run failed, so the operator does not know whether the API server accepts the plan.
    Open(CallError),
    /// The API server refuses the plan, and no other policy takes the object.
    Refused(CallError),
}

impl Context {
    /// Runs one pass. An error leads to a retry and to nothing else.
    pub(crate) async fn pass(&self, key: &ObjectKey) -> Ended {
        // The queue wakes all objects once every list is complete.
        let waits_for = self.watch.unlisted(&key.of);
        if waits_for.contains(&key.of) || self.held_back.keeps_back(&key.of, !waits_for.is_empty()) {
            tracing::debug!(object = %key, ?waits_for, "the pass waits");
            return Ended { result: PassResult::Waiting, next: Next::After(LOOK_AGAIN) };
        }
        let Some(object) = self.watch.object(key) else { return self.gone(key) };
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        if self.catalogue.load().is_some_and(|snapshot| snapshot.is_loading(&object)) {
            if is_going(&object) {
                // It ends as one whose policy is gone, if the policy does not come in time.
                let mut memory = self.memories.take(key, &uid);
                let ended = self.end_unserved(key, &object, &mut memory).await;
                return self.ended(key, ended, memory);
            }
            // The swap wakes it that brings the policy.
            return Ended { result: PassResult::Waiting, next: Next::After(LOOK_AGAIN) };
        }
        let Some(selected) = self.select(key, &object) else {
            let mut memory = self.memories.take(key, &uid);
            memory.unserved = Some(Unserved::NoPolicy);
            if is_going(&object) {
                let ended = self.end_unserved(key, &object, &mut memory).await;
                return self.ended(key, ended, memory);
            }
            self.memories.put(key, memory);
            return match self.tell_halt(key, &Halt::NoPolicy).await {
                Ok(()) => Ended { result: PassResult::Waiting, next: Next::Never },
                Err(error) => Ended::by(&error, self.rules.resync),
            };
        };
        self.catalogue.ledger().chooses(key, selected.chosen);
        let mut memory = self.memories.take(key, &uid);
        memory.unserved = memory.unserved.filter(|why| *why != Unserved::NoPolicy);
        let ended = match self.served(&key.of) {
            Ok(served) => {
                let generation = object["metadata"]["generation"].as_i64().unwrap_or(1);
                let mut subject = Subject { key, served, selected, object, uid, generation };
                self.advance(&mut subject, &mut memory).await
            }
            Err(error) => Err(error),
        };
        self.ended(key, ended, memory)
    }

    /// Ends the pass and keeps its memory.
    fn ended(&self, key: &ObjectKey, ended: Result<Ended, CallError>, mut memory: Memory) -> Ended {
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => self.failed(key, &error, &mut memory),
        };
        if !matches!(ended.next, Next::Retry(_) | Next::Denied) {
            memory.failures = 0;
        }
        self.memories.put(key, memory);
        ended
    }

    fn gone(&self, key: &ObjectKey) -> Ended {
        self.watch.forget(key);
        self.catalogue.ledger().gone(key);
        self.memories.forget(key);
        Ended { result: PassResult::Gone, next: Next::Never }
    }

    fn failed(&self, key: &ObjectKey, error: &CallError, memory: &mut Memory) -> Ended {
        memory.failures = memory.failures.saturating_add(1);
        tracing::warn!(object = %key, %error, failures = memory.failures, "the pass is made again");
        Ended::by(error, self.rules.resync)
    }

    async fn advance(&self, subject: &mut Subject<'_>, memory: &mut Memory) -> Result<Ended, CallError> {
        if is_going(&subject.object) {
            return self.end(subject, memory).await;
        }
        // The newest policy whose plan the API server refuses. The status reports it if no other policy takes the
        // object.
        let mut refused = None;
        let (renderer, rendered, plan, stopped) = loop {
            let asked = self.ask(subject.key, &subject.object, &mut subject.selected, memory).await;
            let (renderer, rendered) = match asked {
                Asked::Answered(renderer, rendered) => (renderer, rendered),
                Asked::Pending => return Ok(Ended { result: PassResult::Waiting, next: Next::After(LOOK_AGAIN) }),
                Asked::Impossible => return Ok(Ended { result: PassResult::Failed, next: Next::After(LOOK_AGAIN) }),
            };
            if matches!(&rendered.verdict, Verdict::Failed(failure) if !failure.failure.says_nothing_of_the_object())
                && let Some(refused) = refused.take()
            {
                break refused;
            }
            let Some(plan) = self.stamped(rendered.manifests(), memory) else {
                return Ok(Ended { result: PassResult::Waiting, next: Next::After(LOOK_AGAIN) });
            };
            let why = match self.rehearse(subject, &rendered, &plan, memory).await {
                Ok(Some(why)) => why,
                Ok(None) => break (renderer, rendered, plan, None),
                Err(error) => break (renderer, rendered, plan, Some(Stopped::Open(error))),
            };
            let falls_back = self.fall_back(subject.key, &mut subject.selected, &rendered.policy, &why);
            if !falls_back {
                break refused.take().unwrap_or((renderer, rendered, plan, None));
            }
            memory.needed.extend(rendered.needs.iter().cloned());
            let what = format!("carry out policy {}", rendered.policy.name);
            let error = CallError { what, class: Class::Permanent, message: why };
            refused.get_or_insert((renderer, rendered, plan, Some(Stopped::Refused(error))));
        };
        if let Verdict::Failed(failure) = &rendered.verdict
            && failure.failure.says_nothing_of_the_object()
        {
            return Ok(Ended { result: PassResult::Retried, next: Next::Retry(None) });
        }
        if let Some(planned) = rendered.planned() {
            memory.finalizer = asked_finalizer(&planned.extra);
        }
        let mut wrote = false;
        let reached = match stopped {
            // The operator does not know whether the server accepts the plan. So the ledger records neither service nor
            // failure.
            Some(Stopped::Open(error)) => Reached::stopped_by(error),
            Some(Stopped::Refused(error)) => {
                let reached = Reached::refused(error, &plan, memory, self.rules.resync);
                self.enter(subject, &reached.outcome);
                reached
            }
            None => {
                let reached = self.reach(subject, &rendered, &plan, memory, &mut wrote).await;
                self.enter(subject, &reached.outcome);
                reached
            }
        };
        self.conclude(subject, renderer, rendered, reached, memory, wrote).await
    }

    /// Records in the ledger which revisions answer for the object, and which it does without.
    fn enter(&self, subject: &Subject<'_>, outcome: &Outcome) {
        let Descent { kind, without, .. } = &subject.selected.descent;
        let is_served = matches!(outcome, Outcome::Applied | Outcome::Gated);
        // If the predecessor does not serve the object either, the object proves nothing against the revision.
        let without: Vec<Without> =
            without.iter().map(|it| Without { counts: it.counts && is_served, ..it.clone() }).collect();
        self.catalogue.ledger().served(subject.key, kind.revisions(), &without);
    }

    /// Reports the outcome in status, Events, metrics and memory. Returns when to look again.
    async fn conclude(
        &self,
        subject: &Subject<'_>,
        renderer: Arc<Renderer>,
        rendered: Arc<Rendered>,
        reached: Reached,
        memory: &mut Memory,
        mut wrote: bool,
    ) -> Result<Ended, CallError> {
        let follows = |name: &Reference| self.watch.follows(name);
        let Ended { result, next } = Ended::at(&reached, self.rules.resync, Instant::now(), follows);
        let Reached { outcome, hindrance, applied, .. } = reached;
        let error = applied.passing_error();
        if error.is_some() || applied.waits {
            memory.failures = memory.failures.saturating_add(1);
        }
        if let Some(error) = error {
            tracing::warn!(object = %subject.key, %error, failures = memory.failures, "the pass is made again");
        }
        let quiet = (applied.waits && memory.failures < SHOWN_FROM)
            || error.is_some_and(|error| !is_shown(error, memory.failures));
        memory.since = subject.selected.since;
        memory.last = Some(Last {
            at: self.rules.clock.now(),
            policy: rendered.policy.clone(),
            outcome: name_of(&outcome).into(),
            decisions: applied.decisions.iter().map(|decision| decision.as_str().into()).collect(),
        });
        if !quiet {
            let (children, unseen) = self.children(&rendered, &subject.uid, &applied.answers).await;
            if let Some(wait) = observed_generation::wait(&subject.object, &outcome, unseen, memory, Instant::now()) {
                let result = if wrote { PassResult::Changed } else { PassResult::Waiting };
                return Ok(Ended { result, next: Next::After(wait) });
            }
            let question = Question {
                renderer,
                is_local: subject.selected.descent.kind.is_local(),
                rendered: Arc::clone(&rendered),
                object: Arc::clone(&subject.object),
                generation: subject.generation,
                outcome,
                hindrance,
                children,
                fallback: subject.selected.fallback(),
            };
            let Told { mut status, fuel, is_failed, is_unasked } = self.assess(question).await;
            self.metrics.fuel(&rendered.policy, fuel);
            if is_unasked {
                return Ok(Ended { result: PassResult::Retried, next: Next::Retry(None) });
            }
            memory.unserved = if is_failed {
                Some(Unserved::PolicyFailed)
            } else {
                (!subject.selected.descent.without.is_empty()).then_some(Unserved::FellBack)
            };
            let Subject { key, served, object, .. } = subject;
            wrote |= self.publish(key, served, object, &mut status, memory).await?;
        }
        let result = if result == PassResult::Settled && wrote { PassResult::Changed } else { result };
        Ok(Ended { result, next })
    }

    /// Writes the status, and reports its changes as log lines and Events.
    pub(super) async fn publish(
        &self,
        key: &ObjectKey,
        served: &Served,
        object: &Value,
        status: &mut Value,
        memory: &mut Memory,
    ) -> Result<bool, CallError> {
        let before = &object["status"];
        times::stamp(status, before, &written(self.rules.clock.now()));
        let news = times::transitions(status, before);
        self.projections.project(&self.client, &self.watch, &key.of, served, status).await;
        let wrote = self.write_status(&key.of, served, object, status, memory).await?;
        memory.ready = Some(readiness(status));
        if wrote {
            for transition in &news {
                tracing::info!(object = %key, reason = transition.reason, message = transition.message, "changed");
                self.tell(object, transition).await;
            }
        }
        Ok(wrote)
    }
}

/// Whether to show the last of `failures` failures in a row. A passing error shows only when it lasts.
pub(super) fn is_shown(error: &CallError, failures: u32) -> bool {
    let passing = matches!(error.class, Class::Transient(_) | Class::Gone);
    !passing || failures >= SHOWN_FROM
}

fn name_of(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Applied => "applied".to_owned(),
        Outcome::Gated => "gated".to_owned(),
        Outcome::Refused(refusal) => format!("refused: {}", refusal.reason()),
        // Every object keeps this text, so it is cut.
        Outcome::Failed(message) => format!("failed: {}", cut(message, NOTE)),
    }
}

fn readiness(status: &Value) -> Readiness {
    match times::find(status, "Ready").and_then(|ready| ready["status"].as_str()) {
        Some("True") => Readiness::True,
        Some("False") => Readiness::False,
        _ => Readiness::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_story_of_a_failure_little_is_remembered_for_each_object() {
        assert_eq!(name_of(&Outcome::Failed("it traps".to_owned())), "failed: it traps");
        assert!(name_of(&Outcome::Failed("and then ".repeat(1 << 20))).len() < 2 * NOTE);
    }
}
