//! Checks PersistentVolumeClaims. The spec is immutable, with one exception: a bound PersistentVolumeClaim can request
//! more storage.

use std::cmp::Ordering;

use serde_json::{Value, json};

use crate::status::Cause;

const IMMUTABLE: &str =
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";

/// Fills in the defaults.
pub(super) fn fill(object: &mut Value) {
    if let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object())
        && spec["volumeMode"].is_null()
    {
        spec["volumeMode"] = json!("Filesystem");
    }
}

/// Validates a PersistentVolumeClaim. `old` is the PersistentVolumeClaim before an update.
pub(super) fn check(new: &Value, old: Option<&Value>) -> Vec<Cause> {
    const SIZE: &str = "spec.resources.requests.storage";
    let size = |claim: &Value| claim["spec"]["resources"]["requests"]["storage"].as_str().map(str::to_owned);
    let mut causes = Vec::new();
    if new["spec"]["accessModes"].as_array().is_none_or(Vec::is_empty) {
        causes.push(Cause::required("spec.accessModes", "at least 1 access mode is required"));
    }
    if size(new).is_none() {
        causes.push(Cause::required("spec.resources[storage]", ""));
    }
    let Some(old) = old else { return causes };
    let mut wanted = new["spec"].clone();
    if old["status"]["phase"] == "Bound" {
        wanted["resources"] = old["spec"]["resources"].clone();
        let (before, after) = (size(old).unwrap_or_default(), size(new).unwrap_or_default());
        if kaos_amounts::compare(&after, &before) == Some(Ordering::Less) {
            causes.push(Cause::forbidden(SIZE, "field can not be less than previous value"));
        }
    }
    if wanted != old["spec"] {
        causes.push(Cause::forbidden("spec", IMMUTABLE));
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(size: &str, phase: &str) -> Value {
        let resources = json!({"requests": {"storage": size}});
        json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": resources}, "status": {"phase": phase}})
    }

    #[test]
    fn only_the_size_of_a_bound_claim_may_change() {
        let changed = |before: Value, after: &Value| check(after, Some(&before)).len();
        assert_eq!(changed(claim("5Gi", "Bound"), &claim("6Gi", "Bound")), 0);
        assert_eq!(changed(claim("5Gi", "Bound"), &claim("5120Mi", "Bound")), 0);
        assert_eq!(changed(claim("5Gi", "Bound"), &claim("4Gi", "Bound")), 1);
        assert_eq!(changed(claim("5Gi", "Pending"), &claim("6Gi", "Pending")), 1);
        let mut other = claim("5Gi", "Bound");
        other["spec"]["accessModes"] = json!(["ReadWriteMany"]);
        assert_eq!(changed(claim("5Gi", "Bound"), &other), 1);
        assert_eq!(check(&json!({"spec": {}}), None).len(), 2);
    }
}
