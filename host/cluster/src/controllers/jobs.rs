//! Jobs: creates pods until enough of them have succeeded.
//!
//! As in the real controller, a finalizer keeps each pod until the controller has counted the pod as succeeded or
//! failed.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Moment, controlled, job_objects, pods as pod_objects, served, workers};
use crate::{
    api::{self, Deletion},
    clock,
    kinds::count,
    state::State,
    storage::{Key, controller, meta},
};

/// The finalizer that keeps a pod until the controller has counted the pod as succeeded or failed.
const TRACKED: &str = "batch.kubernetes.io/job-tracking";
/// The backoff after the first failed pod, and the maximum backoff.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(10), Duration::from_mins(10));

pub(super) fn sync(state: &mut State, key: &Key, moment: &Moment<'_>) -> Option<Duration> {
    let Some(job) = state.store.get(&job_objects(), key).cloned() else {
        let_go(state, key, moment);
        return None;
    };
    let pods = controlled(state, &pod_objects(), &key.namespace, meta(&job, "uid"));
    let mut status = job["status"].clone();
    count_ended(state, &pods, &mut status, moment);
    let active: Vec<Arc<Value>> = pods.into_iter().filter(|pod| !is_over(pod)).collect();
    if ended(&status).is_some() || !meta(&job, "deletionTimestamp").is_empty() {
        delete_all(state, &active, moment);
        write(state, key, status, 0, 0, moment);
        return after_end(state, key, moment);
    }
    if status["startTime"].is_null() && job["spec"]["suspend"] != true {
        status["startTime"] = json!(moment.text());
    }
    let again = step(state, &job, &mut status, &active, moment);
    let active = controlled(state, &pod_objects(), &key.namespace, meta(&job, "uid"));
    let active: Vec<_> = active.iter().filter(|pod| !is_over(pod)).collect();
    let ready = active.iter().filter(|pod| super::pod_status::is_ready(pod)).count();
    write(state, key, status, active.len(), ready, moment);
    again
}

/// Creates and deletes pods, or records the end of the Job. Returns the time after which the controller can create the
/// next pod, or `None` if no wait is necessary.
fn step(
    state: &mut State,
    job: &Value,
    status: &mut Value,
    active: &[Arc<Value>],
    moment: &Moment<'_>,
) -> Option<Duration> {
    let spec = &job["spec"];
    let (succeeded, failed) = (count(&status["succeeded"]), count(&status["failed"]));
    let completions = spec["completions"].as_i64();
    let is_done = match completions {
        Some(completions) => succeeded >= completions,
        None => succeeded > 0 && active.is_empty(),
    };
    let now = moment.text();
    if failed > count(&spec["backoffLimit"]) {
        let why = ("BackoffLimitExceeded", "Job has reached the specified backoff limit");
        end(status, [("FailureTarget", why), ("Failed", why)], &now);
    } else if is_done {
        let why = ("CompletionsReached", "Reached expected number of succeeded pods");
        end(status, [("SuccessCriteriaMet", why), ("Complete", why)], &now);
        status["completionTime"] = json!(now);
    }
    if ended(status).is_some() {
        delete_all(state, active, moment);
        return None;
    }
    let wanted = match completions {
        _ if spec["suspend"] == true => 0,
        Some(completions) => count(&spec["parallelism"]).min(completions - succeeded),
        None if succeeded > 0 => 0,
        None => count(&spec["parallelism"]),
    };
    let wanted = usize::try_from(workers::bounded(state, job, wanted, moment)).unwrap_or_default();
    // A Job without `completions` creates no more pods after the first success, but does not stop pods that already
    // run.
    let surplus = if completions.is_none() && succeeded > 0 { active.len() } else { wanted };
    delete_all(state, active.get(surplus..).unwrap_or_default(), moment);
    if active.len() >= wanted {
        return None;
    }
    if workers::missing_account(state, job).is_some() {
        return Some(BACKOFF.0);
    }
    if let Some(left) = backoff(state, job, failed, moment.now) {
        return Some(left);
    }
    for _ in active.len()..wanted {
        workers::create(state, job, None, moment, |pod| pod["metadata"]["finalizers"] = json!([TRACKED]));
    }
    None
}

/// Returns the remaining backoff time after a failed pod, or `None` if the time is over.
fn backoff(state: &State, job: &Value, failed: i64, now: Timestamp) -> Option<Duration> {
    let doubled = u32::try_from(failed.checked_sub(1)?).ok()?;
    let wait = BACKOFF.0.saturating_mul(2_u32.saturating_pow(doubled)).min(BACKOFF.1);
    let pods = controlled(state, &pod_objects(), meta(job, "namespace"), meta(job, "uid"));
    let ended = pods.iter().filter(|pod| pod["status"]["phase"] == "Failed").filter_map(|pod| {
        clock::parse(pod["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"].as_str()?)
    });
    let passed = Duration::try_from(now.duration_since(ended.max()?)).unwrap_or_default();
    wait.checked_sub(passed).filter(|left| !left.is_zero())
}

/// Counts pods that have ended or are being deleted, and removes their finalizers.
fn count_ended(state: &mut State, pods: &[Arc<Value>], status: &mut Value, moment: &Moment<'_>) {
    for pod in pods.iter().filter(|pod| is_over(pod) && is_tracked(pod)) {
        let field = if pod["status"]["phase"] == "Succeeded" { "succeeded" } else { "failed" };
        status[field] = json!(count(&status[field]) + 1);
        untrack(state, pod, moment);
    }
}

/// Removes the finalizers from the pods of a deleted Job.
fn let_go(state: &mut State, key: &Key, moment: &Moment<'_>) {
    let of_job = |pod: &Value| controller(pod).is_some_and(|it| it["kind"] == "Job" && it["name"] == *key.name);
    let pods = state.store.list(&pod_objects(), &key.namespace).map(|(_, pod)| Arc::clone(pod));
    let pods: Vec<Arc<Value>> = pods.filter(|pod| of_job(pod) && is_tracked(pod)).collect();
    for pod in &pods {
        untrack(state, pod, moment);
    }
}

fn delete_all(state: &mut State, pods: &[Arc<Value>], moment: &Moment<'_>) {
    for pod in pods {
        workers::delete(state, pod, moment);
    }
}

fn is_tracked(pod: &Value) -> bool {
    pod["metadata"]["finalizers"].as_array().is_some_and(|all| all.iter().any(|finalizer| finalizer == TRACKED))
}

fn untrack(state: &mut State, pod: &Arc<Value>, moment: &Moment<'_>) {
    let Some(resource) = served(state, &pod_objects()) else { return };
    api::controller_update(state, &resource, "", pod, &moment.text(), |pod| {
        let mut left = pod["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        left.retain(|finalizer| finalizer != TRACKED);
        if left.is_empty() {
            drop(pod["metadata"].as_object_mut().and_then(|metadata| metadata.remove("finalizers")));
        } else {
            pod["metadata"]["finalizers"] = json!(left);
        }
    });
}

/// Returns whether a pod has ended or is being deleted.
fn is_over(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
        || !meta(pod, "deletionTimestamp").is_empty()
}

/// Returns the time at which a Job ended, or `None` if the Job has not ended.
fn ended(status: &Value) -> Option<&str> {
    let is_end = |condition: &&Value| {
        ["Complete", "Failed"].iter().any(|end| condition["type"] == *end) && condition["status"] == "True"
    };
    status["conditions"].as_array()?.iter().find(is_end)?["lastTransitionTime"].as_str()
}

fn end(status: &mut Value, conditions: [(&str, (&str, &str)); 2], now: &str) {
    let conditions = conditions.map(|(of, (reason, message))| {
        json!({"type": of, "status": "True", "reason": reason, "message": message, "lastProbeTime": now,
            "lastTransitionTime": now})
    });
    status["conditions"] = json!(conditions);
}

fn write(state: &mut State, key: &Key, mut status: Value, active: usize, ready: usize, moment: &Moment<'_>) {
    let Some(resource) = served(state, &job_objects()) else { return };
    let Some(job) = state.store.get(&job_objects(), key).cloned() else { return };
    status["ready"] = json!(ready);
    status["terminating"] = json!(0);
    status["uncountedTerminatedPods"] = json!({});
    status["active"] = json!(active);
    if active == 0 {
        drop(status.as_object_mut().and_then(|status| status.remove("active")));
    }
    api::controller_update(state, &resource, "status", &job, &moment.text(), |object| object["status"] = status);
}

/// Deletes a Job after it has ended and its TTL has passed. Returns the time until the deletion, or `None` if no
/// deletion is due later.
fn after_end(state: &mut State, key: &Key, moment: &Moment<'_>) -> Option<Duration> {
    let job = state.store.get(&job_objects(), key).cloned()?;
    let stays = Duration::from_secs(u64::try_from(job["spec"]["ttlSecondsAfterFinished"].as_i64()?).ok()?);
    let since = ended(&job["status"]).and_then(clock::parse)?;
    let passed = Duration::try_from(moment.now.duration_since(since)).unwrap_or_default();
    let left = stays.checked_sub(passed).filter(|left| !left.is_zero());
    if left.is_none() {
        let resource = served(state, &job_objects())?;
        let _gone = api::delete(state, &resource, key, &Deletion::default(), &moment.text());
    }
    left
}
