//! Finalizers: ours goes on before there are children, those of earlier operators come off on sight, and an object that
//! is being deleted is cleaned up after, in order and for a bounded time.
//!
//! Settings and policies that named a finalizer may be gone, and so may the process that put it on. What we put on stands in
//! the managed fields of the object, which the watch does not keep: only where there is a finalizer that nothing names the
//! object is read, once in the life of a process.

use std::{collections::BTreeSet, time::Duration};

use kaos_policy::{contract::Claim, stamp::pod_template};
use kube::api::PropagationPolicy;
use serde_json::Value;

use super::{
    api::{with_finalizer, without_finalizer},
    child::is_final,
    context::Context,
    decide::is_going,
    error::{CallError, Class},
    fields::{entries_of, put_on},
    memory::Memory,
    times::{Transition, passed},
    wanted::rank,
};
use crate::watch::{ObjectKey, Seen, Served};

/// How long until cleanup is looked at again although nothing was told.
const LOOK_AGAIN: Duration = Duration::from_secs(15);

/// What became of an object that is being deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cleanup {
    /// Nothing of ours holds it.
    Done,
    /// Children have to go first.
    Waits(Duration),
}

/// Which finalizers of an object concern us.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    /// The one that cleanup is done for.
    pub(crate) ours: Option<String>,
    /// Those that come off at once.
    pub(crate) retired: Vec<String>,
}

impl Held {
    /// `asked` is the finalizer that the plan asks for.
    pub(crate) fn of<'a>(object: &Value, claims: impl Iterator<Item = &'a Claim>, asked: Option<&str>) -> Self {
        let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
        let present: BTreeSet<&str> = finalizers.filter_map(Value::as_str).collect();
        let mut held = Self::default();
        let mut retired = BTreeSet::new();
        for claim in claims {
            let ours = asked.or(claim.finalizer.as_deref());
            if let Some(ours) = ours.filter(|ours| present.contains(ours)) {
                held.ours = Some(ours.to_owned());
            }
            retired.extend(claim.retired_finalizers.iter().map(String::as_str));
        }
        let comes_off = |finalizer: &&&str| retired.contains(**finalizer) && held.ours.as_deref() != Some(**finalizer);
        held.retired = present.iter().filter(comes_off).map(|finalizer| (*finalizer).to_owned()).collect();
        held
    }

    /// With those that we put on and nothing names any more. They came before the one that is ours now; where there is none,
    /// the cleanup is done for one of them.
    pub(crate) fn with_left(mut self, left: Vec<String>) -> Self {
        let mut left = left.into_iter();
        self.ours = self.ours.or_else(|| left.next());
        self.retired.extend(left);
        self
    }

    fn names(&self, finalizer: &str) -> bool {
        self.ours.iter().chain(&self.retired).any(|named| named == finalizer)
    }
}

impl Context {
    /// Takes finalizers off an object. Says whether there was anything to take.
    pub(crate) async fn retire(&self, served: &Served, object: &mut Value, held: &[String]) -> Result<bool, CallError> {
        let mut wrote = false;
        for finalizer in held {
            wrote |= self.take_off(served, object, finalizer).await?;
        }
        Ok(wrote)
    }

    /// Puts a finalizer on an object that does not have it.
    pub(crate) async fn hold(&self, served: &Served, object: &mut Value, finalizer: &str) -> Result<bool, CallError> {
        let held = object["metadata"]["finalizers"].as_array();
        if held.is_some_and(|held| held.iter().any(|other| other == finalizer)) {
            return Ok(false);
        }
        self.patch(served, object, &with_finalizer(object, finalizer)).await?;
        Ok(true)
    }

    /// The finalizers of an object that we put on it, and that are none of those that are `known` to concern us.
    pub(crate) async fn left_on(
        &self,
        served: &Served,
        object: &Value,
        known: &Held,
        memory: &mut Memory,
    ) -> Result<Vec<String>, CallError> {
        let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
        // Those without a domain are Kubernetes' own.
        let unnamed: Vec<&str> = finalizers.filter(|name| name.contains('/') && !known.names(name)).collect();
        if unnamed.iter().any(|name| !memory.put_on.contains_key(*name)) {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
            let live = self.calls(served, text("namespace")).get(text("name")).await?;
            let Some(live) = live.filter(|live| live["metadata"]["uid"] == object["metadata"]["uid"]) else {
                return Ok(Vec::new());
            };
            let ours = put_on(entries_of(&live));
            memory.put_on.extend(unnamed.iter().map(|name| ((*name).to_owned(), ours.contains(*name))));
        }
        let is_ours = |name: &&str| memory.put_on.get(*name) == Some(&true);
        Ok(unnamed.into_iter().filter(is_ours).map(str::to_owned).collect())
    }

    async fn take_off(&self, served: &Served, object: &mut Value, finalizer: &str) -> Result<bool, CallError> {
        let Some(operations) = without_finalizer(object, finalizer) else { return Ok(false) };
        self.patch(served, object, &operations).await?;
        Ok(true)
    }

    async fn patch(&self, served: &Served, object: &mut Value, operations: &Value) -> Result<(), CallError> {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (text("namespace"), text("name"));
        let answer = self.calls(served, &namespace).patch(&name, operations).await.map_err(may_pass)?;
        self.watch.wrote(&answer);
        *object = answer;
        Ok(())
    }

    /// Takes the children of an object down in order, and then lets it go.
    pub(crate) async fn clean_up(
        &self,
        key: &ObjectKey,
        served: &Served,
        object: &mut Value,
        held: &Held,
    ) -> Result<Cleanup, CallError> {
        self.retire(served, object, &held.retired).await?;
        let Some(finalizer) = &held.ours else { return Ok(Cleanup::Done) };
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let left = self.time_left(object);
        let problem = if left.is_zero() {
            Some(format!("its children were not gone within {} seconds", self.rules.cleanup.as_secs()))
        } else if self.take_down(&uid).await? {
            None
        } else {
            return Ok(Cleanup::Waits(left.min(LOOK_AGAIN)));
        };
        if let Some(problem) = problem {
            tracing::warn!(object = %key, problem, "the object is let go");
            let message = format!("{problem}; the object is let go, and they go by their owner references");
            self.tell(object, &Transition { reason: "CleanupTimedOut".to_owned(), message, warning: true }).await;
        }
        self.take_off(served, object, finalizer).await?;
        Ok(Cleanup::Done)
    }

    /// Tells that an object that is being deleted is not let go, and why.
    pub(crate) async fn tell_cleanup_failed(&self, object: &Value, error: &CallError) {
        let message = format!("cleaning up: {error}");
        self.tell(object, &Transition { reason: "CleanupFailed".to_owned(), message, warning: true }).await;
    }

    /// Deletes the children in order: what leads to pods, then workloads, then their configuration; those of one rank
    /// only when those of the one before are gone, workloads together with their pods. Says whether all are gone.
    async fn take_down(&self, uid: &str) -> Result<bool, CallError> {
        loop {
            let children = self.watch.children(uid);
            let remaining: Vec<Remaining<'_>> = children.iter().map(Remaining::new).collect();
            let Some(last) = remaining.iter().map(|one| one.rank).max() else { return Ok(true) };
            let next: Vec<Remaining<'_>> = remaining.into_iter().filter(|one| one.rank == last).collect();
            if next.iter().any(|one| one.is_going) {
                return Ok(false);
            }
            for one in next {
                self.remove(one.child, one.propagation()).await?;
            }
        }
    }

    /// How long cleanup may go on.
    pub(super) fn time_left(&self, object: &Value) -> Duration {
        let passed = passed(object["metadata"]["deletionTimestamp"].as_str(), self.rules.clock.now());
        self.rules.cleanup.saturating_sub(passed)
    }
}

/// Patches of finalizers test what they rely on, and the server does not say whether it refuses for that: then the
/// object has changed, and the next try begins with what it is.
fn may_pass(error: CallError) -> CallError {
    let class = if is_final(&error) { Class::Transient(None) } else { error.class };
    CallError { class, ..error }
}

/// A child that is to be taken down.
struct Remaining<'a> {
    child: &'a Seen,
    rank: u8,
    runs_pods: bool,
    is_going: bool,
}

impl<'a> Remaining<'a> {
    fn new(child: &'a Seen) -> Self {
        let live = child.object();
        let runs_pods = live.as_ref().is_some_and(|live| pod_template(live).is_some());
        let is_going = live.as_ref().is_some_and(is_going);
        Self { child, rank: rank(&child.of, runs_pods), runs_pods, is_going }
    }

    /// A workload stays until its pods are gone: until then they need what is taken down next.
    fn propagation(&self) -> PropagationPolicy {
        if self.runs_pods { PropagationPolicy::Foreground } else { PropagationPolicy::Background }
    }
}

#[cfg(test)]
mod tests {
    use kaos_policy::contract::ResourceType;
    use serde_json::json;

    use super::*;

    fn claim(finalizer: Option<&str>, retired: &[&str]) -> Claim {
        Claim {
            primary: ResourceType::new("x.io/v1", "Widget"),
            emits: Vec::new(),
            reads: Vec::new(),
            wishes: Vec::new(),
            finalizer: finalizer.map(str::to_owned),
            retired_finalizers: retired.iter().map(|finalizer| (*finalizer).to_owned()).collect(),
            samples: Vec::new(),
            extra: "{}".to_owned(),
        }
    }

    fn held(finalizers: &[&str], claim: &Claim, asked: Option<&str>) -> (Option<String>, Vec<String>) {
        let object = json!({"metadata": {"finalizers": finalizers}});
        let Held { ours, retired } = Held::of(&object, std::iter::once(claim), asked);
        (ours, retired)
    }

    #[test]
    fn finalizers_of_earlier_operators_come_off_and_foreign_ones_stay() {
        let claim = claim(None, &["x.io/old"]);
        assert_eq!(held(&["y.io/theirs", "x.io/old"], &claim, None), (None, vec!["x.io/old".to_owned()]));
        assert_eq!(held(&[], &claim, None), (None, vec![]));
    }

    #[test]
    fn one_that_the_plan_asks_for_is_ours_also_if_it_was_retired() {
        let claim = claim(None, &["x.io/old"]);
        assert_eq!(held(&["x.io/old"], &claim, Some("x.io/old")), (Some("x.io/old".to_owned()), vec![]));
    }

    #[test]
    fn what_nothing_names_any_more_holds_the_object_only_where_nothing_else_of_ours_does() {
        let left = || vec!["x.io/one".to_owned(), "x.io/two".to_owned()];
        let Held { ours, retired } = Held::default().with_left(left());
        assert_eq!((ours.as_deref(), retired), (Some("x.io/one"), vec!["x.io/two".to_owned()]));
        let held = Held { ours: Some("x.io/hold".to_owned()), retired: Vec::new() }.with_left(left());
        assert_eq!((held.ours.as_deref(), held.retired), (Some("x.io/hold"), left()));
    }

    #[test]
    fn the_claims_own_holds_where_the_object_has_it() {
        let claim = claim(Some("x.io/hold"), &[]);
        assert_eq!(held(&["x.io/hold"], &claim, None).0.as_deref(), Some("x.io/hold"));
        assert_eq!(held(&[], &claim, None).0, None);
    }
}
