//! Rules of `StatefulSet`s.

use serde_json::{Value, json};

use super::deployment;
use crate::status::Cause;

/// The fields of the spec that an update can change.
const MUTABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

/// Fills in the defaults.
pub(super) fn fill(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    for (field, value) in [
        ("replicas", json!(1)),
        ("revisionHistoryLimit", json!(10)),
        ("podManagementPolicy", json!("OrderedReady")),
        ("persistentVolumeClaimRetentionPolicy", json!({})),
        ("updateStrategy", json!({})),
    ] {
        if spec[field].is_null() {
            spec[field] = value;
        }
    }
    for field in ["whenDeleted", "whenScaled"] {
        if spec["persistentVolumeClaimRetentionPolicy"][field].is_null() {
            spec["persistentVolumeClaimRetentionPolicy"][field] = json!("Retain");
        }
    }
    let strategy = &mut spec["updateStrategy"];
    if strategy["type"].is_null() {
        strategy["type"] = json!("RollingUpdate");
    }
    if strategy["type"] == "RollingUpdate" && strategy["rollingUpdate"]["partition"].is_null() {
        strategy["rollingUpdate"]["partition"] = json!(0);
    }
    deployment::fill_template(spec);
}

/// Validates a `StatefulSet`. `old` is the set before an update.
pub(super) fn check(new: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = deployment::check_pods(new, "statefulset");
    let fixed = |object: &Value| {
        let mut spec = object["spec"].clone();
        if let Some(spec) = spec.as_object_mut() {
            spec.retain(|field, _| !MUTABLE.contains(&field.as_str()));
        }
        spec
    };
    if old.is_some_and(|old| fixed(old) != fixed(new)) {
        let message = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                       'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                       'minReadySeconds' are forbidden";
        causes.push(Cause::forbidden("spec", message));
    }
    causes
}
