//! Lists the immutable fields of common types. With this list, the comparison can report a change that an API server
//! would refuse, without a request to an API server.

use serde_json::Value;

use crate::reconcile::never_changes;

/// The immutable fields in the spec of a type: the listed fields, or all fields except the listed fields.
enum Fixed {
    These(&'static [&'static str]),
    AllBut(&'static [&'static str]),
}

/// The fields of a `StatefulSet`'s spec that Kubernetes 1.36 allows to change.
const STATEFUL_SET: [&str; 7] = [
    "minReadySeconds",
    "ordinals",
    "persistentVolumeClaimRetentionPolicy",
    "replicas",
    "revisionHistoryLimit",
    "template",
    "updateStrategy",
];

/// Returns why an API server would refuse a change of an object, and the remedy. Returns `None` if no immutable field
/// changes.
pub fn refused(before: &Value, after: &Value) -> Option<String> {
    let changed = changed(before, after);
    (!changed.is_empty()).then(|| never_changes(&changed.join(", "), after))
}

fn changed(before: &Value, after: &Value) -> Vec<String> {
    let text = |field: &str| after[field].as_str().unwrap_or_default();
    let fixed = match (text("apiVersion"), text("kind")) {
        ("apps/v1", "StatefulSet") => Fixed::AllBut(&STATEFUL_SET),
        ("apps/v1", "Deployment" | "DaemonSet" | "ReplicaSet") => Fixed::These(&["selector"]),
        ("batch/v1", "Job") => Fixed::These(&["completionMode", "selector", "template"]),
        ("v1", "PersistentVolumeClaim") => Fixed::AllBut(&["resources", "volumeAttributesClassName"]),
        ("v1", "ConfigMap" | "Secret") if before["immutable"] == true => {
            let fields = ["data", "binaryData", "immutable"];
            return fields.iter().filter(|field| differs(before, after, field)).map(|&it| it.to_owned()).collect();
        }
        _ => return Vec::new(),
    };
    let (old, new) = (&before["spec"], &after["spec"]);
    let is_fixed = |field: &str| match fixed {
        Fixed::These(fields) => fields.contains(&field),
        Fixed::AllBut(fields) => !fields.contains(&field),
    };
    let names = |spec: &Value| spec.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let mut fields: Vec<String> = names(old).into_iter().chain(names(new)).filter(|name| is_fixed(name)).collect();
    fields.sort();
    fields.dedup();
    fields.retain(|field| differs(old, new, field));
    fields.into_iter().map(|field| format!("spec.{field}")).collect()
}

/// Returns whether a field differs. A missing field counts as the default that the API server would set.
fn differs(old: &Value, new: &Value, field: &str) -> bool {
    let value = |of: &Value| match (field, &of[field]) {
        ("podManagementPolicy", Value::Null) => "OrderedReady".into(),
        ("completionMode", Value::Null) => "NonIndexed".into(),
        ("volumeMode", Value::Null) => "Filesystem".into(),
        ("immutable", Value::Null) => false.into(),
        (_, Value::Null) => Value::Null,
        (_, Value::String(text)) if text.is_empty() => Value::Null,
        (_, value) => value.clone(),
    };
    value(old) != value(new)
}
