//! Finds fields that an earlier plan left on a child and that no field manager owns.
//!
//! The API server derives some fields from other fields. For example, the server copies `serviceAccountName` to the
//! older `serviceAccount`, and gives an `emptyDir` to a volume without a source. It also sets defaults for
//! `rollingUpdate` and pull policies. A server-side apply removes only fields with a field manager, and derived fields
//! have no manager. So the derived fields of the old plan stay when the plan changes. For example, pods keep a removed
//! ServiceAccount, or the server refuses the new plan because a volume has two sources. To prevent this, the operator
//! makes itself the manager of derived fields, and its next apply removes them.

use kaos_policy::stamp::pod_template_pointer;
use serde_json::{Map, Value, json};

/// The path of a field, in the format of managed fields.
pub(crate) type Path = Vec<String>;

/// Returns the fields of `live` that the server derived from an earlier plan and would not derive from `wanted`. The
/// result consists of groups: the server derives each field of a group from another field of this group.
pub(crate) fn leftovers(wanted: &Value, live: &Value) -> Vec<Vec<Path>> {
    let mut groups = Vec::new();
    for field in ["strategy", "updateStrategy"] {
        rolling_update(field, &wanted["spec"][field], &live["spec"][field], &mut groups);
    }
    let template = pod_template_pointer(wanted).filter(|pointer| !pointer.is_empty());
    let pods = template.and_then(|pointer| Some((pointer, wanted.pointer(pointer)?, live.pointer(pointer)?)));
    if let Some((pointer, wanted, live)) = pods {
        let steps = pointer.split('/').skip(1).chain(["spec"]);
        let at: Path = steps.map(|step| format!("f:{step}")).collect();
        let (wanted, live) = (&wanted["spec"], &live["spec"]);
        service_account(&at, wanted, live, &mut groups);
        volumes(&at, wanted, live, &mut groups);
        for field in ["containers", "initContainers"] {
            pull_policies(&at, field, wanted, live, &mut groups);
        }
        image_volumes(&at, wanted, live, &mut groups);
    }
    groups
}

/// Returns the path of the first leftover field, for messages. Returns `None` if there is no leftover field.
pub(crate) fn named(groups: &[Vec<Path>]) -> Option<String> {
    let path = groups.first()?.first()?;
    let steps = path.iter().map(|step| step.strip_prefix("f:").unwrap_or(step));
    Some(steps.collect::<Vec<_>>().join("."))
}

/// Finds a leftover `rollingUpdate`: the server sets this field by default, and then refuses any other strategy next to
/// it.
fn rolling_update(field: &str, wanted: &Value, live: &Value, groups: &mut Vec<Vec<Path>>) {
    let rolls = |strategy: &Value| matches!(strategy["type"].as_str(), None | Some("RollingUpdate"));
    if !rolls(wanted) && wanted["rollingUpdate"].is_null() && !live["rollingUpdate"].is_null() {
        groups.push(vec![below(&["f:spec".to_owned()], &[&format!("f:{field}"), "f:rollingUpdate"])]);
    }
}

/// Finds a leftover ServiceAccount: the server keeps the older field `serviceAccount`, and derives the newer field
/// `serviceAccountName` from it.
fn service_account(at: &[String], wanted: &Value, live: &Value, groups: &mut Vec<Vec<Path>>) {
    const NAMES: [&str; 2] = ["serviceAccountName", "serviceAccount"];
    let is_set = |spec: &Value, name: &str| spec[name].as_str().is_some_and(|account| !account.is_empty());
    if !NAMES.iter().any(|name| is_set(wanted, name)) {
        let left = NAMES.iter().filter(|name| is_set(live, name));
        push(groups, left.map(|name| below(at, &[&format!("f:{name}")])).collect());
    }
}

/// Finds leftover volume sources: the server gives an `emptyDir` to a volume without a source, and then refuses every
/// other source.
fn volumes(at: &[String], wanted: &Value, live: &Value, groups: &mut Vec<Vec<Path>>) {
    for (name, wanted, live) in pairs("volumes", wanted, live) {
        let is_kept = |field: &str| field == "name" || wanted.contains_key(field);
        if wanted.len() > 1 {
            let left = live.keys().filter(|field| !is_kept(field));
            push(groups, left.map(|field| below(at, &["f:volumes", &key(name), &format!("f:{field}")])).collect());
        }
    }
}

/// Finds leftover pull policies of containers: the server derives the pull policy from the image's tag only once, when
/// it first sees the container.
fn pull_policies(at: &[String], field: &str, wanted: &Value, live: &Value, groups: &mut Vec<Vec<Path>>) {
    for (name, wanted, live) in pairs(field, wanted, live) {
        if is_outdated(wanted, live, "image", "imagePullPolicy") {
            groups.push(vec![below(at, &[&format!("f:{field}"), &key(name), "f:imagePullPolicy"])]);
        }
    }
}

/// Finds leftover pull policies of image volumes: the server derives these pull policies in the same way as for
/// containers.
fn image_volumes(at: &[String], wanted: &Value, live: &Value, groups: &mut Vec<Vec<Path>>) {
    for (name, wanted, live) in pairs("volumes", wanted, live) {
        if let Some(Value::Object(wanted)) = wanted.get("image")
            && let Some(Value::Object(live)) = live.get("image")
            && is_outdated(wanted, live, "reference", "pullPolicy")
        {
            groups.push(vec![below(at, &["f:volumes", &key(name), "f:image", "f:pullPolicy"])]);
        }
    }
}

/// Returns whether the live pull policy differs from the policy that the server would derive from the wanted image.
fn is_outdated(wanted: &Map<String, Value>, live: &Map<String, Value>, image: &str, policy: &str) -> bool {
    let image = wanted.get(image).and_then(Value::as_str);
    let kept = live.get(policy).and_then(Value::as_str);
    let is_planned = wanted.get(policy).is_some_and(|policy| !policy.is_null());
    !is_planned && image.zip(kept).is_some_and(|(image, kept)| kept != pull_policy(image))
}

/// Returns the pull policy that the server derives from an image.
pub(crate) fn pull_policy(image: &str) -> &'static str {
    let name = image.rsplit('/').next().unwrap_or(image);
    if name.contains('@') {
        return "IfNotPresent";
    }
    match name.split_once(':') {
        None | Some((_, "latest")) => "Always",
        Some(_) => "IfNotPresent",
    }
}

/// Returns the pairs of items with the same name in both lists.
fn pairs<'a>(
    field: &str,
    wanted: &'a Value,
    live: &'a Value,
) -> impl Iterator<Item = (&'a str, &'a Map<String, Value>, &'a Map<String, Value>)> {
    fn items<'a>(spec: &'a Value, field: &str) -> impl Iterator<Item = &'a Map<String, Value>> + use<'a> {
        spec[field].as_array().into_iter().flatten().filter_map(Value::as_object)
    }
    let name = |item: &'a Map<String, Value>| item.get("name").and_then(Value::as_str);
    let live: Vec<_> = items(live, field).collect();
    items(wanted, field).filter_map(move |item| {
        let wanted = name(item)?;
        let live = live.iter().find(|live| name(live) == Some(wanted))?;
        Some((wanted, item, *live))
    })
}

fn key(name: &str) -> String {
    format!("k:{}", json!({"name": name}))
}

fn below(at: &[String], steps: &[&str]) -> Path {
    at.iter().cloned().chain(steps.iter().map(|step| (*step).to_owned())).collect()
}

fn push(groups: &mut Vec<Vec<Path>>, group: Vec<Path>) {
    if !group.is_empty() {
        groups.push(group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(pod: &Value) -> Value {
        let mut pod = pod.clone();
        if pod["containers"].is_null() {
            pod["containers"] = json!([]);
        }
        json!({"spec": {"template": {"spec": pod}}})
    }

    fn left(wanted: &Value, live: &Value) -> Vec<String> {
        let groups = leftovers(&deployment(wanted), &deployment(live));
        groups.into_iter().flatten().map(|path| path[3..].join(" ")).collect()
    }

    #[test]
    fn a_service_account_that_is_no_longer_wanted_is_left_under_both_names() {
        let live = json!({"serviceAccountName": "sa", "serviceAccount": "sa"});
        assert_eq!(left(&json!({}), &live), ["f:serviceAccountName", "f:serviceAccount"]);
        assert_eq!(left(&json!({"serviceAccountName": ""}), &live), ["f:serviceAccountName", "f:serviceAccount"]);
        for wanted in [json!({"serviceAccountName": "other"}), json!({"serviceAccount": "other"})] {
            assert!(left(&wanted, &live).is_empty(), "the server derives the other name from {wanted}");
        }
        assert!(left(&json!({}), &json!({})).is_empty());
    }

    #[test]
    fn a_default_volume_source_is_a_leftover_next_to_a_planned_one() {
        let volume = |source: Value| {
            let mut volume = source;
            volume["name"] = json!("v");
            json!({"volumes": [volume]})
        };
        let live = volume(json!({"emptyDir": {}}));
        let path = r#"f:volumes k:{"name":"v"} f:emptyDir"#;
        assert_eq!(left(&volume(json!({"configMap": {"name": "c"}})), &live), [path]);
        assert!(left(&volume(json!({})), &live).is_empty(), "a volume without a source keeps the emptyDir");
        assert!(left(&volume(json!({"emptyDir": {}})), &live).is_empty());
    }

    #[test]
    fn a_pull_policy_is_left_when_the_server_would_derive_another_one() {
        let container = |image: &str, policy: Value| json!({"containers": [{"name": "c", "image": image, "imagePullPolicy": policy}]});
        let path = r#"f:containers k:{"name":"c"} f:imagePullPolicy"#;
        for (image, derived) in [
            ("x", "Always"),
            ("x:latest", "Always"),
            ("host:5000/x", "Always"),
            ("host:5000/x:1", "IfNotPresent"),
            ("x@sha256:0", "IfNotPresent"),
            ("x:latest@sha256:0", "IfNotPresent"),
        ] {
            let wanted = container(image, Value::Null);
            assert!(left(&wanted, &container(image, json!(derived))).is_empty(), "{image}");
            assert_eq!(left(&wanted, &container(image, json!("Never"))), [path], "{image}");
            assert!(left(&container(image, json!("Never")), &container(image, json!("Never"))).is_empty());
        }
    }

    #[test]
    fn the_pull_policy_of_an_image_volume_is_left_when_the_server_would_derive_another_one() {
        let volume = |image: &str, policy: Value| json!({"volumes": [{"name": "v", "image": {"reference": image, "pullPolicy": policy}}]});
        let live = volume("x:1", json!("IfNotPresent"));
        let path = r#"f:volumes k:{"name":"v"} f:image f:pullPolicy"#;
        assert_eq!(left(&volume("x:latest", Value::Null), &live), [path]);
        assert!(left(&volume("x:2", Value::Null), &live).is_empty());
        assert!(left(&volume("x:latest", json!("IfNotPresent")), &live).is_empty());
    }

    #[test]
    fn rolling_update_defaults_are_leftovers_under_another_strategy() {
        let live = json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
        let wanted = |strategy: Value| json!({"spec": {"strategy": strategy}});
        let found = leftovers(&wanted(json!({"type": "Recreate"})), &live);
        assert_eq!(named(&found).as_deref(), Some("spec.strategy.rollingUpdate"));
        assert!(leftovers(&wanted(json!({"type": "RollingUpdate"})), &live).is_empty());
        assert!(leftovers(&wanted(Value::Null), &live).is_empty());
    }
}
