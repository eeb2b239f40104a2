//! Finds an item in a list at any position, if certain fields identify the items of this list.

use serde_json::Value;

/// Returns the fields that together identify an item of a list, each with the API server's default. Returns `None` for
/// a list that is compared as a whole. This function needs no schema, because in built-in kinds the name of a list
/// determines these fields.
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

/// Returns the fields that identify a port: number and protocol. Returns `None` if the item is not a port. The field
/// for the port number has different names in containers and in Services.
pub(super) fn port_keys(item: &Value) -> Option<&'static [(&'static str, &'static str)]> {
    if !item["containerPort"].is_null() {
        return Some(&[("containerPort", ""), ("protocol", "TCP")]);
    }
    (!item["port"].is_null()).then_some(&[("port", ""), ("protocol", "TCP")])
}

/// Returns the live item that has the same values in the fields `keys` as the wanted item, or `None`.
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
