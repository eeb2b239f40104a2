//! Handles the deletion of an object: deletes its children in order and within a time limit, then removes the
//! finalizer.

pub(super) mod finalizers;

use std::{sync::Arc, time::Duration};

use kaos_policy::stamp::pod_template;
use kube::api::PropagationPolicy;
use serde_json::Value;

use crate::reconcile::{
    access::Access,
    children::decide::is_going,
    children::final_manifest::rank,
    children::prune::remove,
    context::Rules,
    deletion::finalizers::{Finalizers, left_on, retire, take_off},
    ended::{Ended, Next},
    error::{CallError, Class},
    event_text::EventText,
    memory::Memory,
    policy_runner::PolicyRunner,
    select::{Asked, ask},
    subject::Subject,
};
use crate::{
    metrics::PassResult,
    timestamps::passed,
    watch::{ObjectKey, Seen, Served},
};

/// The time until the cleanup checks again whether children are gone, if no event causes an earlier pass.
const LOOK_FOR_CHILDREN: Duration = Duration::from_secs(15);

/// Runs the pass over an object that is being deleted. Such a pass only deletes the children and removes finalizers.
pub(crate) async fn end(
    runner: &PolicyRunner,
    access: &Access,
    rules: &Rules,
    subject: &mut Subject<'_>,
    memory: &mut Memory,
) -> Result<Ended, CallError> {
    let mut held = Finalizers::on(subject, memory);
    // After a restart, the operator does not remember which finalizer the plan requests. Ask the policies again,
    // because the plan may request one of the finalizers in `retired`.
    if memory.finalizers.asked.is_none() && !held.retired.is_empty() {
        let asked = ask(runner, subject.key, &subject.object, &mut subject.selected, memory).await;
        if let Asked::Answered(_, rendered) = asked {
            memory.finalizers.asked = rendered.planned().and_then(|planned| planned.finalizer.clone());
            held = Finalizers::on(subject, memory);
        }
    }
    let_go(access, rules, subject.key, &subject.served, &mut subject.object, held, memory).await
}

/// Runs the pass over an object that is being deleted and has no policy. Waits for a policy until the cleanup time is
/// over. Without a policy, the operator does not know the types of the children, and cannot delete the children in
/// order. After the cleanup time, removes the finalizer. The garbage collector then deletes the children by their owner
/// references.
pub(crate) async fn end_unserved(
    access: &Access,
    rules: &Rules,
    key: &ObjectKey,
    object: &Arc<Value>,
    memory: &mut Memory,
) -> Result<Ended, CallError> {
    let served = access.served(&key.of)?;
    let ends = |next| Ok(Ended { result: PassResult::Gone, next });
    match left_on(access, &served, object, &Finalizers::default(), memory).await {
        Ok(left) if left.is_empty() => return ends(Next::Never),
        Ok(_) => {}
        // Without the right to read the object, the operator does not know whether it added a finalizer itself. New
        // rights cause new passes.
        Err(error) if error.class == Class::Forbidden => return ends(Next::After(rules.resync)),
        Err(error) => return Err(error),
    }
    let left = time_left(access, rules, object);
    if !left.is_zero() && !is_orphaning(object) {
        return ends(Next::After(left));
    }
    let_go(access, rules, key, &served, &mut Arc::clone(object), Finalizers::default(), memory).await
}

/// Deletes the children of an object that is being deleted, and removes the operator's finalizers from the object.
async fn let_go(
    access: &Access,
    rules: &Rules,
    key: &ObjectKey,
    served: &Served,
    object: &mut Arc<Value>,
    held: Finalizers,
    memory: &mut Memory,
) -> Result<Ended, CallError> {
    let cleaned = match left_on(access, served, object, &held, memory).await {
        Ok(left) => clean_up(access, rules, key, served, object, &held.with_left(left)).await,
        Err(error) => Err(error),
    };
    if let Err(error) = &cleaned
        && error.is_shown(memory.failures.saturating_add(1))
    {
        tell_cleanup_failed(access, object, error).await;
    }
    Ok(Ended { result: PassResult::Gone, next: cleaned? })
}

/// Deletes the children of an object in order, then removes the finalizer. Returns the time of the next pass.
async fn clean_up(
    access: &Access,
    rules: &Rules,
    key: &ObjectKey,
    served: &Served,
    object: &mut Arc<Value>,
    held: &Finalizers,
) -> Result<Next, CallError> {
    retire(access, served, object, &held.retired).await?;
    if let Some(client) = &held.client {
        leave_client(access, served, key, object, client).await?;
    }
    let Some(finalizer) = &held.ours else { return Ok(Next::Never) };
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    let left = time_left(access, rules, object);
    let problem = if is_orphaning(object) {
        None
    } else if left.is_zero() {
        Some(format!("the children of this object were not gone within {} seconds", rules.cleanup.as_secs()))
    } else if take_down(access, &uid).await? {
        None
    } else {
        return Ok(Next::After(left.min(LOOK_FOR_CHILDREN)));
    };
    if let Some(problem) = problem {
        tracing::warn!(object = %key, problem, "removing the finalizer before the cleanup is done");
        let message =
            format!("{problem}; the operator removes the finalizer, and leaves the children to the garbage collector");
        access.tell(object, &EventText { reason: "CleanupTimedOut".to_owned(), message, warning: true }).await;
    }
    take_off(access, served, object, finalizer).await?;
    Ok(Next::Never)
}

/// Removes the finalizer of an earlier operator for an object's client at an identity provider. First writes an Event,
/// because the operator does not delete the client.
async fn leave_client(
    access: &Access,
    served: &Served,
    key: &ObjectKey,
    object: &mut Arc<Value>,
    finalizer: &str,
) -> Result<(), CallError> {
    let message = format!(
        "removing the finalizer {finalizer}, which KAOS's operator set: the client of this object stays at the \
         identity provider; delete the client there"
    );
    tracing::warn!(object = %key, "{message}");
    access.tell(object, &EventText { reason: "ClientLeft".to_owned(), message, warning: true }).await;
    take_off(access, served, object, finalizer).await?;
    Ok(())
}

/// Writes an Event that explains why an object's cleanup failed.
async fn tell_cleanup_failed(access: &Access, object: &Value, error: &CallError) {
    let message = format!("cleanup failed: {error}");
    access.tell(object, &EventText { reason: "CleanupFailed".to_owned(), message, warning: true }).await;
}

/// Deletes the children in order: Services and routes, then workloads, then their configuration. Deletes children of a
/// rank only when all children of the previous rank are gone, including the pods of workloads. Returns whether all
/// children are gone.
async fn take_down(access: &Access, uid: &str) -> Result<bool, CallError> {
    loop {
        let children = access.watch.children(uid);
        let remaining: Vec<Remaining<'_>> = children.iter().map(Remaining::new).collect();
        let Some(last) = remaining.iter().map(|one| one.rank).max() else { return Ok(true) };
        let next: Vec<Remaining<'_>> = remaining.into_iter().filter(|one| one.rank == last).collect();
        if next.iter().any(|one| one.is_going) {
            return Ok(false);
        }
        for one in next {
            remove(access, one.child, one.propagation()).await?;
        }
    }
}

/// Returns the remaining time in which the cleanup may delay the deletion of the object.
fn time_left(access: &Access, rules: &Rules, object: &Value) -> Duration {
    let passed = passed(object["metadata"]["deletionTimestamp"].as_str(), access.clock.now());
    rules.cleanup.saturating_sub(passed)
}

/// Returns whether the object is being deleted with `--cascade=orphan`, so that its children stay. In such a deletion,
/// the garbage collector removes the owner reference to the object from each child.
fn is_orphaning(object: &Value) -> bool {
    let finalizers = object["metadata"]["finalizers"].as_array();
    finalizers.is_some_and(|held| held.iter().any(|finalizer| finalizer == "orphan"))
}

/// A child to delete.
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

    /// Returns how to delete the child. A workload stays until its pods are gone, because the pods need the children of
    /// the next rank.
    fn propagation(&self) -> PropagationPolicy {
        if self.runs_pods { PropagationPolicy::Foreground } else { PropagationPolicy::Background }
    }
}
