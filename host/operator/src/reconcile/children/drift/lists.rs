//! Handles lists with keyed items: finds the matching item at any position.

use serde_json::Value;

/// Returns the fields that together identify an item of a list, with the API server's defaults. Returns `None` for a
/// list that is compared as a whole. The schema of a kind defines these fields. This function needs no schema, because
/// the name of a list determines the fields in built-in kinds.
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

/// Returns the fields that identify a port: number and protocol. `None` if the item is not a port. Containers and
/// Services have different field names for the port number.
pub(super) fn port_keys(item: &Value) -> Option<&'static [(&'static str, &'static str)]> {
    if !item["containerPort"].is_null() {
        return Some(&[("containerPort", ""), ("protocol", "TCP")]);
    }
    (!item["port"].is_null()).then_some(&[("port", ""), ("protocol", "TCP")])
}

/// Returns the live item with the same key as the wanted item, or `None` if there is no such item.
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
