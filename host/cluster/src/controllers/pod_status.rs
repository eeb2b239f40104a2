//! Writes the status of a pod as the kubelet does, and reads the status of a pod for other controllers.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::PodFate;
use crate::{clock, storage::meta};

/// Returns whether the pod's condition `Ready` is true.
pub(super) fn is_ready(pod: &Value) -> bool {
    ready_since(pod).is_some()
}

/// Returns the time since which the pod is ready, or `None` if the pod is not ready.
pub(super) fn ready_since(pod: &Value) -> Option<&str> {
    let conditions = pod["status"]["conditions"].as_array()?;
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready" && condition["status"] == "True")?;
    ready["lastTransitionTime"].as_str()
}

/// Returns an IP address that depends only on the pod's UID.
pub(super) fn address(pod: &Value) -> String {
    let hex = meta(pod, "uid").replace('-', "");
    let number = u32::from_str_radix(hex.get(..6).unwrap_or("1"), 16).unwrap_or(1);
    format!("10.{}.{}.{}", 128 + number / 65536 % 64, number / 256 % 256, 1 + number % 254)
}

pub(super) fn run(pod: &mut Value, fate: PodFate, ready: bool, address: &str, now: &str) {
    let waiting = match fate {
        PodFate::CrashLoop => Some(("CrashLoopBackOff", "back-off 5m0s restarting failed container")),
        PodFate::ImagePullBackOff => Some(("ImagePullBackOff", "Back-off pulling image")),
        _ => None,
    };
    let containers: Vec<Value> = pod["spec"]["containers"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|container| {
            let name = &container["name"];
            let known = pod["status"]["containerStatuses"]
                .as_array()
                .and_then(|all| all.iter().find(|one| one["name"] == *name));
            let running = known.map(|known| known["state"]["running"].clone()).filter(|running| !running.is_null());
            let state = match waiting {
                Some((reason, message)) => json!({"waiting": {"reason": reason, "message": message}}),
                None => json!({"running": running.unwrap_or_else(|| json!({"startedAt": now}))}),
            };
            json!({"name": name, "image": container["image"], "imageID": "", "ready": ready,
                "restartCount": if fate == PodFate::CrashLoop { 5 } else { 0 }, "state": state, "lastState": {},
                "started": waiting.is_none()})
        })
        .collect();
    let names: Vec<String> =
        containers.iter().map(|container| container["name"].as_str().unwrap_or("").to_owned()).collect();
    let unready = format!("containers with unready status: [{}]", names.join(" "));
    let why = (!ready).then_some(("ContainersNotReady", unready.as_str()));
    set_condition(pod, "PodScheduled", true, None, now);
    set_condition(pod, "Initialized", true, None, now);
    set_condition(pod, "ContainersReady", ready, why, now);
    set_condition(pod, "Ready", ready, why, now);
    let status = &mut pod["status"];
    status["phase"] = json!(if fate == PodFate::ImagePullBackOff { "Pending" } else { "Running" });
    status["containerStatuses"] = json!(containers);
    status["podIP"] = json!(address);
    status["podIPs"] = json!([{"ip": address}]);
    status["hostIP"] = json!("127.0.0.1");
    status["hostIPs"] = json!([{"ip": "127.0.0.1"}]);
    if status["startTime"].is_null() {
        status["startTime"] = json!(now);
    }
}

pub(super) fn set_condition(pod: &mut Value, kind: &str, holds: bool, why: Option<(&str, &str)>, now: &str) {
    let status = if holds { "True" } else { "False" };
    let mut conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let known = conditions.iter().position(|condition| condition["type"] == *kind);
    let since = known.map(|at| &conditions[at]).filter(|known| known["status"] == *status);
    let since = since.map_or_else(|| json!(now), |known| known["lastTransitionTime"].clone());
    let mut condition = json!({"type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": since});
    if let Some((reason, message)) = why {
        condition["reason"] = json!(reason);
        condition["message"] = json!(message);
    }
    match known {
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
    pod["status"]["conditions"] = json!(conditions);
}

/// Checks whether a pod is available: it must have been ready for `min_ready_seconds`. If the pod has been ready for a
/// shorter time, the error contains the remaining time.
pub(super) fn availability(pod: &Arc<Value>, min_ready_seconds: u64, now: Timestamp) -> Result<(), Option<Duration>> {
    let since = ready_since(pod).and_then(clock::parse).ok_or(None)?;
    let for_long = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    match Duration::from_secs(min_ready_seconds).checked_sub(for_long) {
        None | Some(Duration::ZERO) => Ok(()),
        Some(missing) => Err(Some(missing)),
    }
}
