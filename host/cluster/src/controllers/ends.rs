//! Ends the pods of Jobs. With the fate [`PodFate::ReadyAfter`], a pod of a Job succeeds after the time in the fate.
//! With the fate [`PodFate::CrashLoop`], a pod with the restart policy `Never` fails at the first crash.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Moment, PodFate, pod_status};
use crate::{api, catalogue::Resource, state::State, storage::controller};

/// Returns whether a pod ends by itself, because it belongs to a Job.
pub(super) fn ends(pod: &Value) -> bool {
    controller(pod).is_some_and(|owner| owner["kind"] == "Job")
}

/// Returns whether a pod has ended.
pub(super) fn is_over(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

/// Runs a pod of a Job, and ends the pod. Returns the time until the end of the pod, or `None` if the pod has ended or
/// does not end.
pub(super) fn sync(
    state: &mut State,
    resource: &Resource,
    pod: &Arc<Value>,
    fate: PodFate,
    started: Timestamp,
    moment: &Moment<'_>,
) -> Option<Duration> {
    let now = moment.text();
    let since = Duration::try_from(moment.now.duration_since(started)).unwrap_or_default();
    let (end, again) = match fate {
        PodFate::ReadyAfter(after) if since >= after => (Some(true), None),
        PodFate::ReadyAfter(after) => (None, after.checked_sub(since)),
        // If the pod never restarts containers, the first crash ends the pod.
        PodFate::CrashLoop if pod["spec"]["restartPolicy"] == "Never" => (Some(false), None),
        _ => (None, None),
    };
    let address = pod["status"]["podIP"].as_str().map_or_else(|| pod_status::address(pod), str::to_owned);
    api::controller_update(state, resource, "status", pod, &now, |pod| {
        let runs = matches!(fate, PodFate::ReadyAfter(_));
        pod_status::run(
            pod,
            if end.is_some() { PodFate::NotReady } else { fate },
            runs && end.is_none(),
            &address,
            &now,
        );
        if let Some(succeeded) = end {
            finish(pod, succeeded, &now);
        }
    });
    again
}

fn finish(pod: &mut Value, succeeded: bool, now: &str) {
    let (phase, code, reason, why) =
        if succeeded { ("Succeeded", 0, "Completed", "PodCompleted") } else { ("Failed", 1, "Error", "PodFailed") };
    pod["status"]["phase"] = json!(phase);
    let containers = pod["status"]["containerStatuses"].as_array_mut().into_iter().flatten();
    for container in containers {
        let begun = container["state"]["running"]["startedAt"].as_str().unwrap_or(now).to_owned();
        container["state"] = json!({"terminated": {"exitCode": code, "reason": reason, "startedAt": begun,
            "finishedAt": now}});
        container["started"] = json!(false);
    }
    for condition in ["ContainersReady", "Ready"] {
        pod_status::set_condition(pod, condition, false, Some((why, "")), now);
    }
}
