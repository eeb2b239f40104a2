//! Lists whose items have keys: which item is which, whatever stands where.

use serde_json::Value;

/// The fields that together name an item of a list, with what the API server fills in for one that is missing;
/// none for a list that is one value. Schemas say this; for the built-in kinds the name of the list is enough.
pub(super) fn keys(list: &str) -> Option<&'static [(&'static str, &'static str)]> {
    match list {
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "env"
        | "volumes"
        | "imagePullSecrets"
        | "schedulingGates"
        | "resourceClaims"
        | "claims"
        | "secrets" => Some(&[("name", "")]),
        "volumeMounts" => Some(&[("mountPath", "")]),
        "volumeDevices" => Some(&[("devicePath", "")]),
        "hostAliases" => Some(&[("ip", "")]),
        "topologySpreadConstraints" => Some(&[("topologyKey", ""), ("whenUnsatisfiable", "")]),
        "conditions" => Some(&[("type", "")]),
        "ownerReferences" => Some(&[("uid", "")]),
        _ => None,
    }
}

/// Ports are named by their number, which is called differently in containers and Services, and their protocol.
pub(super) fn port_keys(item: &Value) -> Option<&'static [(&'static str, &'static str)]> {
    if !item["containerPort"].is_null() {
        return Some(&[("containerPort", ""), ("protocol", "TCP")]);
    }
    (!item["port"].is_null()).then_some(&[("port", ""), ("protocol", "TCP")])
}

/// The item of a list that has the same key.
pub(super) fn matching<'a>(wanted: &Value, keys: &[(&str, &str)], live: &'a [Value]) -> Option<&'a Value> {
    let same = |item: &&Value| {
        keys.iter().all(|(field, preset)| match (&wanted[*field], &item[*field]) {
            (Value::Null, Value::Null) => true,
            (Value::Null, value) | (value, Value::Null) => *value == **preset,
            (a, b) => a == b,
        })
    };
    live.iter().find(same)
}
