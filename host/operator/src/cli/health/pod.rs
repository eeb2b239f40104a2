//! The state of a pod, and the cause if the pod is not ready.

use kaos_policy::contract::Reference;
use serde_json::Value;

use super::{
    cause::RootCause,
    object_health::{Health, HealthState, told},
};
use crate::status::conditions::{condition, is_true};

/// The reasons with which a container waits because the node has no image for the container.
const IMAGE: [&str; 6] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
];
/// The reasons with which a container waits while the pod is starting.
const STARTING: [&str; 2] = ["ContainerCreating", "PodInitializing"];
/// Reasons of Events about volumes.
const VOLUME_EVENTS: [&str; 3] = ["FailedMount", "FailedAttachVolume", "FailedMapVolume"];
/// Reasons of Events about probes.
const PROBE_EVENTS: [&str; 1] = ["Unhealthy"];

/// Reads the state of a pod.
pub(super) fn health(pod: &Value) -> Health {
    let phase = pod["status"]["phase"].as_str().unwrap_or("Pending");
    let all: Vec<&Value> = containers(pod, "containerStatuses").collect();
    let ready = all.iter().filter(|container| container["ready"] == true).count();
    let restarts: i64 = all.iter().filter_map(|container| container["restartCount"].as_i64()).sum();
    let word = waiting(pod).map_or_else(|| phase.to_owned(), |(_, reason, _)| reason.to_owned());
    let wanted = pod["spec"]["containers"].as_array().map_or(all.len(), Vec::len);
    let mut line = format!("{word}, {ready} of {wanted} containers ready");
    if restarts > 0 {
        line += &format!(", restarts: {restarts}");
    }
    let state = match phase {
        "Succeeded" => HealthState::Ready,
        "Failed" => HealthState::Stalled,
        _ if is_true(pod, "Ready") => HealthState::Ready,
        _ => HealthState::NotReady,
    };
    Health { state, line }
}

/// Returns why a pod is not ready. `logs` is the command that prints the pod's logs, without the flag for the
/// container. `event` takes reasons, and returns the message of the pod's newest Event that has one of these reasons.
pub(super) fn cause(pod: &Value, logs: &str, event: impl Fn(&[&str]) -> Option<String>) -> RootCause {
    let status = &pod["status"];
    if let Some(scheduled) = condition(pod, "PodScheduled").filter(|scheduled| scheduled["status"] == "False") {
        let message = told(scheduled);
        return RootCause::Unschedulable { message };
    }
    if status["phase"] == "Failed" {
        let text = |field: &str| status[field].as_str().unwrap_or_default();
        let message = if text("message").is_empty() { last_run(pod) } else { text("message").to_owned() };
        let message = if text("reason").is_empty() { message } else { format!("{}: {message}", text("reason")) };
        return RootCause::Ended { message };
    }
    let logs_of = |container: &str| format!("{logs} -c {container}");
    if let Some((container, reason, message)) = waiting(pod) {
        let (name, said) = (text(&container["name"]), if message.is_empty() { reason } else { message });
        let container_name = name.to_owned();
        if IMAGE.contains(&reason) {
            let image = image(pod, name, container);
            return RootCause::Image { container: container_name, image, message: format!("{reason}: {said}") };
        }
        if reason == "CrashLoopBackOff" {
            return crash(container, logs_of(name));
        }
        if !STARTING.contains(&reason) {
            return RootCause::NotStartable { container: container_name, message: format!("{reason}: {said}") };
        }
        if let Some(message) = event(&VOLUME_EVENTS) {
            return RootCause::Volume { message };
        }
        return RootCause::Starting { message: format!("container {name}: {reason}") };
    }
    let unready = containers(pod, "containerStatuses").find(|container| container["ready"] != true);
    match unready {
        Some(container) if !container["state"]["terminated"].is_null() => {
            crash(container, logs_of(text(&container["name"])))
        }
        Some(container) => {
            let name = text(&container["name"]);
            RootCause::Probe { container: name.to_owned(), probe: event(&PROBE_EVENTS), logs: logs_of(name) }
        }
        None => match event(&VOLUME_EVENTS) {
            Some(message) => RootCause::Volume { message },
            None => RootCause::Starting { message: "the kubelet has not started the containers yet".to_owned() },
        },
    }
}

/// Returns the volume claims that a pod mounts.
pub(super) fn claims(pod: &Value, namespace: Option<&str>) -> impl Iterator<Item = Reference> {
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    let names = volumes.filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str());
    names.map(move |name| Reference {
        api_version: "v1".to_owned(),
        kind: "PersistentVolumeClaim".to_owned(),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    })
}

/// Describes how the previous run of a container ended. Without a previous run, describes how the current run ended.
fn crash(container: &Value, logs: String) -> RootCause {
    let runs = [&container["lastState"]["terminated"], &container["state"]["terminated"]];
    let ended = runs.into_iter().find(|run| !run.is_null()).unwrap_or(&Value::Null);
    let out_of_memory = ended["reason"] == "OOMKilled";
    let how = match (ended["exitCode"].as_i64(), out_of_memory) {
        (_, true) => "was killed, because it used more memory than its limit".to_owned(),
        (Some(code), false) => format!("ends with exit code {code}"),
        (None, false) => "ends again and again".to_owned(),
    };
    let restarts = container["restartCount"].as_i64().unwrap_or_default();
    RootCause::Crash { container: text(&container["name"]).to_owned(), how, restarts, out_of_memory, logs }
}

/// Describes the end of the first container that failed.
fn last_run(pod: &Value) -> String {
    let ended = containers(pod, "containerStatuses").chain(containers(pod, "initContainerStatuses"));
    let mut codes =
        ended.filter_map(|container| Some((container, container["state"]["terminated"]["exitCode"].as_i64()?)));
    codes.find(|(_, code)| *code != 0).map_or_else(String::new, |(container, code)| {
        format!("container {} had exit code {code}", text(&container["name"]))
    })
}

/// Returns the first container that waits, with the reason and the message. Looks at init containers first, because
/// they run first.
fn waiting(pod: &Value) -> Option<(&Value, &str, &str)> {
    let all = || containers(pod, "initContainerStatuses").chain(containers(pod, "containerStatuses"));
    let waits = |container: &Value| container["state"]["waiting"]["reason"].is_string();
    let is_start = |container: &Value| STARTING.contains(&text(&container["state"]["waiting"]["reason"]));
    // Prefer a container that fails: the other containers may only wait for it.
    let found = all().find(|it| waits(it) && !is_start(it)).or_else(|| all().find(|it| waits(it)))?;
    let waiting = &found["state"]["waiting"];
    Some((found, text(&waiting["reason"]), text(&waiting["message"])))
}

/// Returns the image that the spec names. The status may contain another form of the name.
fn image(pod: &Value, container: &str, status: &Value) -> String {
    let spec = &pod["spec"];
    let lists = [&spec["containers"], &spec["initContainers"]];
    let mut named = lists.into_iter().filter_map(Value::as_array).flatten().filter(|it| it["name"] == *container);
    named.find_map(|it| it["image"].as_str()).unwrap_or_else(|| text(&status["image"])).to_owned()
}

fn containers<'a>(pod: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    pod["status"][field].as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(status: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "main", "image": "x:1"}]},
            "status": status})
    }

    fn with_state(state: &Value) -> Value {
        pod(&json!({"phase": "Pending", "containerStatuses": [
            {"name": "main", "image": "docker.io/x:1", "ready": false, "restartCount": 3, "state": state["state"],
                "lastState": state["lastState"]}]}))
    }

    fn told(pod: &Value) -> String {
        cause(pod, "kaos-operator logs widget/a", |_| None).to_string()
    }

    #[test]
    fn a_waiting_container_tells_its_cause() {
        let waiting = |reason: &str, message: &str| {
            with_state(&json!({"state": {"waiting": {"reason": reason, "message": message}}}))
        };
        assert_eq!(
            told(&waiting("ImagePullBackOff", "Back-off pulling image")),
            "the node cannot pull image x:1 of container main: ImagePullBackOff: Back-off pulling image"
        );
        assert_eq!(
            told(&waiting("CreateContainerConfigError", "secret \"key\" not found")),
            "container main cannot start: CreateContainerConfigError: secret \"key\" not found"
        );
        assert_eq!(told(&waiting("ContainerCreating", "")), "still starting: container main: ContainerCreating");
        let mount = cause(&waiting("ContainerCreating", ""), "l", |reasons| {
            reasons.contains(&"FailedMount").then(|| "configmap \"c\" not found".to_owned())
        });
        assert_eq!(mount.to_string(), "a volume of the pod cannot be mounted: configmap \"c\" not found");
    }

    #[test]
    fn a_crash_names_exit_code_or_memory_and_the_command_for_the_log() {
        let crash = |ended: Value| {
            with_state(
                &json!({"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": ended}}),
            )
        };
        let failed = cause(&crash(json!({"exitCode": 3, "reason": "Error"})), "kaos-operator logs widget/a", |_| None);
        assert_eq!(failed.to_string(), "container main ends with exit code 3; restarts: 3");
        assert!(failed.remedy().contains("`kaos-operator logs widget/a -c main --previous`"), "{}", failed.remedy());
        let killed = cause(&crash(json!({"exitCode": 137, "reason": "OOMKilled"})), "l", |_| None);
        assert!(killed.to_string().contains("more memory than its limit"), "{killed}");
        assert!(killed.remedy().contains("resources.limits.memory"), "{}", killed.remedy());
    }

    #[test]
    fn pods_that_no_node_takes_or_that_ended_or_that_fail_a_probe_tell_so() {
        let unscheduled = pod(&json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]}));
        assert_eq!(told(&unscheduled), "no node takes the pod: Unschedulable: 0/3 nodes");
        let evicted = pod(&json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}));
        assert_eq!(told(&evicted), "the pod ended: Evicted: low on memory");
        assert_eq!(health(&evicted).state, HealthState::Stalled);
        let running = with_state(&json!({"state": {"running": {}}}));
        let probe = cause(&running, "l", |_| Some("Readiness probe failed: 503".to_owned()));
        assert_eq!(probe.to_string(), "container main runs, but is not ready: Readiness probe failed: 503");
        assert_eq!(health(&running).line, "Pending, 0 of 1 containers ready, restarts: 3");
    }

    #[test]
    fn a_failed_init_container_explains_the_containers_that_wait_for_it() {
        let status = json!({"phase": "Pending",
            "initContainerStatuses": [{"name": "pull", "state": {"waiting": {"reason": "ErrImagePull"}}}],
            "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "PodInitializing"}}}]});
        assert!(told(&pod(&status)).contains("of container pull: "), "{}", told(&pod(&status)));
    }
}
