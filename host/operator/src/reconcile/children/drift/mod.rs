//! Drift: compares a planned manifest with the live object in the form that the API server stores.
//!
//! The server fills in defaults, rewrites quantities and drops empty values, so plain equality would report false
//! drift. Additional live fields belong to other clients and are not drift. For a type whose stored form this module
//! does not know, the comparison may report a false difference. A dry run then decides whether the difference is drift
//! (`super::repair`).

mod lists;

use serde_json::Value;

/// The names of fields that contain a quantity, and of maps that contain only quantities.
const AMOUNTS: [&str; 8] = ["limits", "requests", "capacity", "sizeLimit", "divisor", "storage", "overhead", "hard"];

/// Fields that the server drops if they are zero or false. For most other fields of a pod, `false` and a missing field
/// mean different things.
const DROPPED: [&str; 14] = [
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "readOnly",
    "stdin",
    "stdinOnce",
    "tty",
    "paused",
    "initialDelaySeconds",
    "minReadySeconds",
    "publishNotReadyAddresses",
    "hostPort",
    "nodePort",
    "prefixLength",
];

/// Maps that the server drops if they are empty.
const EMPTIED: [&str; 9] =
    ["labels", "annotations", "nodeSelector", "matchLabels", "limits", "requests", "data", "binaryData", "selector"];

/// Maps that are compared as a whole: an added entry in a selector changes which objects the selector selects.
const WHOLE: [&str; 5] = ["selector", "nodeSelector", "matchLabels", "labelSelector", "namespaceSelector"];

/// Returns the path of the first field whose planned value the live object does not have. Returns `None` if the live
/// object has all planned values.
pub(crate) fn missing(wanted: &Value, live: &Value) -> Option<String> {
    let mut path = Vec::new();
    if contained("", wanted, live, false, &mut path) {
        return None;
    }
    path.reverse();
    Some(path.join("."))
}

/// Returns whether the live value has everything that the wanted value has. `name` is the name of the field with these
/// values. If something is different, writes its path into `path`, the innermost step first.
fn contained(name: &str, wanted: &Value, live: &Value, amounts: bool, path: &mut Vec<String>) -> bool {
    match (wanted, live) {
        // A planned null matches any value.
        (Value::Null, _) => true,
        (Value::Object(wanted), Value::Object(live)) => {
            let others =
                WHOLE.contains(&name).then(|| live.keys().find(|field| !wanted.contains_key(*field))).flatten();
            others.is_none_or(|added| at(path, added.clone()))
                && wanted.iter().all(|(field, wanted)| {
                    let amounts = amounts || AMOUNTS.contains(&field.as_str());
                    let live = live.get(field).unwrap_or(&Value::Null);
                    contained(field, wanted, live, amounts, path) || at(path, field.clone())
                })
        }
        (Value::Array(wanted), Value::Array(live)) => items(name, wanted, live, path),
        (Value::Array(wanted), Value::Null) => wanted.is_empty(),
        (Value::Object(wanted), Value::Null) => wanted.is_empty() && EMPTIED.contains(&name),
        (Value::String(wanted), Value::Null) => wanted.is_empty(),
        (Value::Bool(false), Value::Null) => DROPPED.contains(&name),
        (Value::Number(number), Value::Null) => number.as_f64() == Some(0.0) && DROPPED.contains(&name),
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::String(a), Value::String(b)) => a == b || (amounts && kaos_amounts::same(a, b)),
        (Value::Number(a), Value::String(b)) => amounts && kaos_amounts::same(&a.to_string(), b),
        (a, b) => a == b,
    }
}

fn items(name: &str, wanted: &[Value], live: &[Value], path: &mut Vec<String>) -> bool {
    let keys = match (name, wanted.first()) {
        ("ports", Some(first)) => lists::port_keys(first),
        _ => lists::keys(name),
    };
    if let Some(keys) = keys.filter(|_| wanted.iter().all(Value::is_object)) {
        return wanted.iter().enumerate().all(|(i, item)| {
            lists::matching(item, keys, live).is_some_and(|live| contained("", item, live, false, path))
                || at(path, i.to_string())
        });
    }
    if wanted.len() != live.len() {
        return false;
    }
    let mut pairs = wanted.iter().zip(live).enumerate();
    pairs.all(|(i, (wanted, live))| contained("", wanted, live, false, path) || at(path, i.to_string()))
}

/// Adds a step to the path and returns `false`.
fn at(path: &mut Vec<String>, step: String) -> bool {
    path.push(step);
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn same(wanted: &Value, live: &Value) {
        assert_eq!(missing(wanted, live), None, "{wanted} in {live}");
    }

    fn differs(wanted: &Value, live: &Value, path: &str) {
        assert_eq!(missing(wanted, live).as_deref(), Some(path), "{wanted} in {live}");
    }

    fn pod(container: &Value) -> Value {
        json!({"spec": {"containers": [container]}})
    }

    #[test]
    fn server_defaults_are_no_drift() {
        let live = json!({"name": "a", "image": "x", "terminationMessagePath": "/dev/x", "env": [{"name": "A"}]});
        same(&pod(&json!({"name": "a", "image": "x", "env": [{"name": "A", "value": ""}]})), &pod(&live));
    }

    #[test]
    fn amounts_are_compared_as_amounts_and_only_where_amounts_stand() {
        let resources = |cpu: Value| pod(&json!({"name": "a", "resources": {"limits": {"cpu": cpu}}}));
        same(&resources(json!("1000m")), &resources(json!("1")));
        same(&resources(json!(1)), &resources(json!("1")));
        differs(&resources(json!("1")), &resources(json!("2")), "spec.containers.0.resources.limits.cpu");
        let env = |value: &str| pod(&json!({"name": "a", "env": [{"name": "N", "value": value}]}));
        differs(&env("1000m"), &env("1"), "spec.containers.0.env.0.value");
    }

    #[test]
    fn items_are_found_by_their_keys_and_those_of_others_are_left_alone() {
        let wanted = pod(&json!({"name": "a", "ports": [{"containerPort": 80}], "env": [{"name": "B", "value": "1"}]}));
        let mut live = json!({"spec": {"containers": [
            {"name": "sidecar"},
            {"name": "a", "ports": [{"containerPort": 80, "protocol": "UDP"}, {"containerPort": 80, "protocol": "TCP"}],
             "env": [{"name": "A", "value": "x"}, {"name": "B", "value": "1"}]},
        ]}});
        same(&wanted, &live);
        live["spec"]["containers"][1]["env"][1]["value"] = json!("2");
        differs(&wanted, &live, "spec.containers.0.env.0.value");
    }

    #[test]
    fn a_port_is_named_by_its_number_and_protocol() {
        let service = |ports: Value| json!({"spec": {"ports": ports}});
        let live = service(json!([{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8000}]));
        same(&service(json!([{"name": "http", "port": 80, "targetPort": 8000}])), &live);
        differs(&service(json!([{"name": "http", "port": 81}])), &live, "spec.ports.0");
        differs(&service(json!([{"name": "http", "port": 80, "targetPort": 1}])), &live, "spec.ports.0.targetPort");
    }

    #[test]
    fn other_lists_are_one_value() {
        let args = |args: Value| pod(&json!({"name": "a", "args": args}));
        same(&args(json!(["x", "y"])), &args(json!(["x", "y"])));
        differs(&args(json!(["x"])), &args(json!(["x", "y"])), "spec.containers.0.args");
        differs(&args(json!(["y", "x"])), &args(json!(["x", "y"])), "spec.containers.0.args.0");
        same(&args(json!([])), &pod(&json!({"name": "a"})));
        let rules = |rules: Value| json!({"spec": {"rules": rules}});
        same(
            &rules(json!([{"backendRefs": [{"name": "a"}]}])),
            &rules(json!([{"backendRefs": [{"name": "a", "weight": 1}], "matches": []}])),
        );
    }

    #[test]
    fn empty_values_are_equal_to_missing_ones_where_the_server_drops_them() {
        same(&json!({"metadata": {"labels": {}}}), &json!({"metadata": {}}));
        same(&json!({"spec": {"hostNetwork": false, "minReadySeconds": 0, "nodeName": null}}), &json!({"spec": {}}));
        let volume = |source: Value| json!({"spec": {"volumes": [source]}});
        differs(
            &volume(json!({"name": "v", "emptyDir": {}})),
            &volume(json!({"name": "v", "hostPath": {"path": "/"}})),
            "spec.volumes.0.emptyDir",
        );
        differs(
            &json!({"securityContext": {"allowPrivilegeEscalation": false}}),
            &json!({"securityContext": {}}),
            "securityContext.allowPrivilegeEscalation",
        );
    }

    #[test]
    fn additions_to_a_selector_are_drift() {
        let service = |selector: Value| json!({"spec": {"selector": selector}});
        differs(&service(json!({"a": "1"})), &service(json!({"a": "1", "b": "2"})), "spec.selector.b");
        same(&service(json!({"a": "1"})), &service(json!({"a": "1"})));
        let deployment = |labels: Value| json!({"spec": {"selector": {"matchLabels": labels}}});
        differs(
            &deployment(json!({"a": "1"})),
            &deployment(json!({"a": "1", "b": "2"})),
            "spec.selector.matchLabels.b",
        );
    }

    #[test]
    fn foreign_labels_and_keys_are_no_drift_and_lost_ones_are() {
        let wanted = json!({"metadata": {"labels": {"a": "1"}}, "data": {"k": "v"}});
        same(&wanted, &json!({"metadata": {"labels": {"a": "1", "b": "2"}}, "data": {"k": "v", "l": "w"}}));
        differs(&wanted, &json!({"metadata": {"labels": {"b": "2"}}, "data": {"k": "v"}}), "metadata.labels.a");
        differs(&wanted, &json!({"metadata": {"labels": {"a": "1"}}}), "data");
    }
}
