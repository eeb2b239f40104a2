//! One pass over one object: fetch, select, resolve, translate, apply, prune, assess, write, tell.

use std::{sync::Arc, time::Duration};

use kaos_policy::{
    contract::{Outcome, Refusal},
    cut::{NOTE, cut},
    failure::Failure,
    render::{Rendered, Renderer, Verdict},
};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    assess::{Question, Told},
    child::is_final,
    context::Context,
    decide::is_going,
    error::{CallError, Class},
    finalize::{Cleanup, Held},
    halt::Halt,
    memory::{Last, Memory},
    reach::Reached,
    select::{Asked, Selected},
    times, unseen,
};
use crate::{
    catalogue::{Descent, Without},
    metrics::{PassResult, Readiness, Unserved},
    watch::{ObjectKey, Served},
};

/// When an object is looked at again, if nothing happens before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Never: it is gone, or the watch will say.
    Never,
    /// After a while.
    After(Duration),
    /// After a wait that grows from failure to failure, at least this one.
    Retry(Option<Duration>),
}

/// How a pass ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) result: PassResult,
    pub(crate) next: Next,
}

/// A failure of the API server shows in the status from this one on: one that is over at once is no news.
const SHOWN_FROM: u32 = 3;
/// When something that cannot be watched is looked at again.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// What a pass works on.
pub(super) struct Subject<'a> {
    pub(super) key: &'a ObjectKey,
    pub(super) served: Served,
    pub(super) selected: Selected,
    pub(super) object: Value,
    pub(super) uid: String,
    /// The generation that the pass looks at. What our own writes are answered with may be newer: of that nobody has made
    /// a plan yet.
    pub(super) generation: i64,
}

impl Context {
    /// Makes one pass. Errors end in a retry and nothing else.
    pub(crate) async fn pass(&self, key: &ObjectKey) -> Ended {
        // All objects are woken once everything was listed.
        let waits_for = self.watch.unlisted(&key.of);
        if waits_for.contains(&key.of) || self.held_back.keeps_back(&key.of, !waits_for.is_empty()) {
            tracing::debug!(object = %key, ?waits_for, "the pass waits");
            return Ended { result: PassResult::Waiting, next: Next::After(LOOK_AGAIN) };
        }
        let Some(object) = self.watch.object(key) else { return self.gone(key) };
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let Some(selected) = self.select(key, &object) else {
            let mut memory = self.memories.take(key, &uid);
            memory.unserved = Some(Unserved::NoPolicy);
            if is_going(&object) {
                let ended = self.end_unserved(key, &object, &mut memory).await;
                return self.ended(key, ended, memory);
            }
            self.memories.put(key, memory);
            self.tell_halt(key, &Halt::NoPolicy).await;
            return Ended { result: PassResult::Waiting, next: Next::Never };
        };
        self.catalogue.ledger().chooses(key, selected.chosen);
        let mut memory = self.memories.take(key, &uid);
        memory.unserved = memory.unserved.filter(|why| *why != Unserved::NoPolicy);
        let ended = match self.served(&key.of) {
            Ok(served) => {
                let generation = object["metadata"]["generation"].as_i64().unwrap_or(1);
                let mut subject = Subject { key, served, selected, object: (*object).clone(), uid, generation };
                self.advance(&mut subject, &mut memory).await
            }
            Err(error) => Err(error),
        };
        self.ended(key, ended, memory)
    }

    /// The pass is over: what it remembers is kept.
    fn ended(&self, key: &ObjectKey, ended: Result<Ended, CallError>, mut memory: Memory) -> Ended {
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => self.failed(key, &error, &mut memory),
        };
        if !matches!(ended.next, Next::Retry(_)) {
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
        let next = match error.class {
            Class::Permanent => Next::After(self.rules.resync),
            Class::Transient(wait) => Next::Retry(wait),
            Class::Gone | Class::Forbidden => Next::Retry(None),
        };
        let result = if matches!(next, Next::Retry(_)) { PassResult::Retried } else { PassResult::Failed };
        Ended { result, next }
    }

    async fn advance(&self, subject: &mut Subject<'_>, memory: &mut Memory) -> Result<Ended, CallError> {
        if is_going(&subject.object) {
            return self.end(subject, memory).await;
        }
        let object = Arc::new(subject.object.clone());
        let (renderer, rendered, plan, stopped) = loop {
            let (renderer, rendered) = match self.ask(subject.key, &object, &mut subject.selected, memory).await {
                Asked::Answered(renderer, rendered) => (renderer, rendered),
                Asked::Pending => return Ok(Ended { result: PassResult::Waiting, next: Next::After(LOOK_AGAIN) }),
                Asked::Impossible => return Ok(Ended { result: PassResult::Failed, next: Next::After(LOOK_AGAIN) }),
            };
            let Some(plan) = self.stamped(rendered.manifests(), memory) else {
                return Ok(Ended { result: PassResult::Waiting, next: Next::After(LOOK_AGAIN) });
            };
            let refused = match self.rehearse(subject, &rendered, &plan, memory).await {
                Ok(refused) => refused,
                Err(error) => break (renderer, rendered, plan, Some(error)),
            };
            let falls_back =
                refused.is_some_and(|why| self.fall_back(subject.key, &mut subject.selected, &rendered.policy, &why));
            if !falls_back {
                break (renderer, rendered, plan, None);
            }
            memory.needed.extend(rendered.needs.iter().cloned());
        };
        if let Verdict::Failed(failure) = &rendered.verdict
            // No sandbox is free: that says nothing about the object.
            && matches!(*failure.failure, Failure::Sandbox(_))
        {
            return Ok(Ended { result: PassResult::Retried, next: Next::Retry(None) });
        }
        if let Some(planned) = rendered.planned() {
            memory.finalizer = asked_finalizer(&planned.extra);
        }
        let mut wrote = false;
        let reached = if let Some(error) = stopped {
            // Whether the server takes the plan is open, so nobody is known to serve the object or to fail on it.
            Reached::stopped_by(error)
        } else {
            let reached = self.reach(subject, &rendered, &plan, memory, &mut wrote).await;
            self.enter(subject, &reached.outcome);
            reached
        };
        self.conclude(subject, renderer, rendered, reached, memory, wrote).await
    }

    /// Enters into the ledger who answers for the object, and what it goes without.
    fn enter(&self, subject: &Subject<'_>, outcome: &Outcome) {
        let Descent { kind, without, .. } = &subject.selected.descent;
        let is_served = matches!(outcome, Outcome::Applied | Outcome::Gated);
        // An object that what came before does not serve either says nothing about a revision.
        let without: Vec<Without> =
            without.iter().map(|it| Without { counts: it.counts && is_served, ..it.clone() }).collect();
        self.catalogue.ledger().served(subject.key, kind.revisions(), &without);
    }

    /// Tells what was reached: status, Events, metrics, memory; and says when to look again.
    async fn conclude(
        &self,
        subject: &Subject<'_>,
        renderer: Arc<Renderer>,
        rendered: Arc<Rendered>,
        Reached { outcome, hindrance, applied, again }: Reached,
        memory: &mut Memory,
        mut wrote: bool,
    ) -> Result<Ended, CallError> {
        let error = applied.error.as_ref().filter(|error| !is_final(error));
        if error.is_some() || applied.waits {
            memory.failures = memory.failures.saturating_add(1);
        }
        if let Some(error) = error {
            tracing::warn!(object = %subject.key, %error, failures = memory.failures, "the pass is made again");
        }
        let later = applied.tried_again.map_or(self.rules.resync, |at| at.saturating_duration_since(Instant::now()));
        let (result, next) = match (&outcome, error) {
            (_, Some(error)) => {
                let wait = if let Class::Transient(wait) = error.class { wait } else { None };
                (PassResult::Retried, Next::Retry(wait))
            }
            (Outcome::Gated | Outcome::Refused(Refusal::Waiting(_)), None) => {
                (PassResult::Waiting, again.map_or(self.resync(), Next::After))
            }
            (Outcome::Refused(_), None) => (PassResult::Refused, self.resync()),
            (Outcome::Failed(_), None) if applied.waits => (PassResult::Waiting, Next::Retry(None)),
            (Outcome::Failed(_), None) if !applied.conflicts.is_empty() => {
                let followed = applied.conflicts.iter().all(|name| self.watch.follows(name));
                (PassResult::Waiting, Next::After(if followed { later } else { LOOK_AGAIN }))
            }
            (Outcome::Failed(_), None) => (PassResult::Failed, Next::After(later)),
            (Outcome::Applied, None) => (PassResult::Settled, self.resync()),
        };
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
            if let Some(wait) = unseen::wait(&subject.object, &outcome, unseen, memory, Instant::now()) {
                let result = if wrote { PassResult::Changed } else { PassResult::Waiting };
                return Ok(Ended { result, next: Next::After(wait) });
            }
            let question = Question {
                renderer,
                is_local: subject.selected.descent.kind.is_local(),
                rendered: Arc::clone(&rendered),
                object: Arc::new(subject.object.clone()),
                generation: subject.generation,
                outcome,
                hindrance,
                children,
                fallback: subject.selected.fallback(),
            };
            let Told { mut status, fuel, is_failed } = self.assess(question).await;
            self.metrics.fuel(&rendered.policy, fuel);
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

    /// Writes the status and tells what changed in it.
    pub(super) async fn publish(
        &self,
        key: &ObjectKey,
        served: &Served,
        object: &Value,
        status: &mut Value,
        memory: &mut Memory,
    ) -> Result<bool, CallError> {
        let before = &object["status"];
        times::stamp(status, before, &times::written(self.rules.clock.now()));
        let news = times::transitions(status, before);
        self.project(&key.of, served, status).await;
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

    /// The object is being deleted: cleanup and nothing else.
    async fn end(&self, subject: &mut Subject<'_>, memory: &mut Memory) -> Result<Ended, CallError> {
        let mut going = held(subject, memory);
        // After a restart only the plan knows whether one of those that come off is asked for.
        if memory.finalizer.is_none() && !going.retired.is_empty() {
            let object = Arc::new(subject.object.clone());
            if let Asked::Answered(_, rendered) = self.ask(subject.key, &object, &mut subject.selected, memory).await {
                memory.finalizer = rendered.planned().and_then(|planned| asked_finalizer(&planned.extra));
                going = held(subject, memory);
            }
        }
        self.let_go(subject.key, &subject.served, &mut subject.object, going, memory).await
    }

    /// The same where nobody answers for the object. Somebody may again before the time for cleanup is over, who knows of
    /// which types its children are, and takes them down in order; later they go by their owner references.
    async fn end_unserved(&self, key: &ObjectKey, object: &Value, memory: &mut Memory) -> Result<Ended, CallError> {
        let served = self.served(&key.of)?;
        let ends = |next| Ok(Ended { result: PassResult::Gone, next });
        match self.left_on(&served, object, &Held::default(), memory).await {
            Ok(left) if left.is_empty() => return ends(Next::Never),
            Ok(_) => {}
            // Nobody knows whether any of them is ours. With the rights come the passes.
            Err(error) if error.class == Class::Forbidden => return ends(self.resync()),
            Err(error) => return Err(error),
        }
        let left = self.time_left(object);
        if !left.is_zero() {
            return ends(Next::After(left));
        }
        self.let_go(key, &served, &mut object.clone(), Held::default(), memory).await
    }

    /// Lets an object go that is being deleted, as far as it is held by us.
    async fn let_go(
        &self,
        key: &ObjectKey,
        served: &Served,
        object: &mut Value,
        going: Held,
        memory: &mut Memory,
    ) -> Result<Ended, CallError> {
        let cleaned = match self.left_on(served, object, &going, memory).await {
            Ok(left) => self.clean_up(key, served, object, &going.with_left(left)).await,
            Err(error) => Err(error),
        };
        if let Err(error) = &cleaned
            && is_shown(error, memory.failures.saturating_add(1))
        {
            self.tell_cleanup_failed(object, error).await;
        }
        let next = match cleaned? {
            Cleanup::Done => Next::Never,
            Cleanup::Waits(wait) => Next::After(wait),
        };
        Ok(Ended { result: PassResult::Gone, next })
    }

    fn resync(&self) -> Next {
        Next::After(self.rules.resync)
    }
}

/// Whether the last of so many failures in a row is told: one that may be over at once only when it is not.
fn is_shown(error: &CallError, failures: u32) -> bool {
    let passing = matches!(error.class, Class::Transient(_) | Class::Gone);
    !passing || failures >= SHOWN_FROM
}

/// The finalizers of the object that concern us.
pub(super) fn held(subject: &Subject<'_>, memory: &Memory) -> Held {
    Held::of(&subject.object, subject.selected.descent.kind.claims(), memory.finalizer.as_deref())
}

/// The finalizer that a plan asks for in its `extra`.
fn asked_finalizer(extra: &str) -> Option<String> {
    let extra: Value = serde_json::from_str(extra).ok()?;
    extra["finalizer"].as_str().filter(|finalizer| !finalizer.is_empty()).map(str::to_owned)
}

fn name_of(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Applied => "applied".to_owned(),
        Outcome::Gated => "gated".to_owned(),
        Outcome::Refused(refusal) => format!("refused: {}", refusal.reason()),
        // It is kept for each object.
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
