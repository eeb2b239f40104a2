//! Reads the few facts of managed fields that the watch needs. The decoder skips all other fields, because managed
//! fields are often the larger half of an object.

use std::collections::BTreeMap;

use kaos_objects::metadata;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, value::RawValue};

/// The fields that one manager set, as far as the watch reads them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ManagedFields {
    manager: String,
    subresource: String,
    time: Option<Box<str>>,
    #[serde(rename = "fieldsV1")]
    fields: ManagedParts,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ManagedParts {
    #[serde(rename = "f:spec")]
    spec: Option<IgnoredAny>,
    #[serde(rename = "f:metadata")]
    metadata: ManagedMetadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
#[allow(clippy::zero_sized_map_values, reason = "serde decodes a set only from a list")]
struct ManagedMetadata {
    #[serde(rename = "f:annotations")]
    annotations: BTreeMap<String, IgnoredAny>,
}

impl ManagedFields {
    /// Decodes the entries of `metadata.managedFields`. Leaves out entries that it cannot decode.
    pub(super) fn decode(text: &RawValue) -> Vec<Self> {
        let entries: Vec<&RawValue> = serde_json::from_str(text.get()).unwrap_or_default();
        entries.into_iter().filter_map(|entry| serde_json::from_str(entry.get()).ok()).collect()
    }

    /// Converts the entries of `metadata.managedFields`, like [`decode`](Self::decode).
    pub(super) fn convert(value: Value) -> Vec<Self> {
        let Value::Array(entries) = value else { return Vec::new() };
        entries.into_iter().filter_map(|entry| serde_json::from_value(entry).ok()).collect()
    }

    /// Returns whether the manager set a field of the spec, or an annotation that policies read.
    fn concern_policies(&self) -> bool {
        let annotations = &self.fields.metadata.annotations;
        self.fields.spec.is_some() || annotations.keys().any(|key| key.starts_with("f:kaos.tools/"))
    }
}

/// Returns whether another field manager wrote into the spec. Ignores writes through a subresource.
pub(super) fn is_shared(managed: &[ManagedFields]) -> bool {
    let is_foreign = |it: &ManagedFields| it.manager != metadata::MANAGER && it.subresource.is_empty();
    managed.iter().any(|it| is_foreign(it) && it.fields.spec.is_some())
}

/// Returns the last time at which a client other than the operator changed the spec, or an annotation that policies
/// read. All times have the same format, so comparing their texts compares the times.
pub(super) fn last_change(managed: Vec<ManagedFields>) -> Option<Box<str>> {
    let is_change =
        |it: &ManagedFields| it.manager != metadata::MANAGER && it.subresource != "status" && it.concern_policies();
    managed.into_iter().filter(is_change).filter_map(|it| it.time).max()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decoded(entries: &[Value]) -> Vec<ManagedFields> {
        let text = json!(entries).to_string();
        let decoded = ManagedFields::decode(serde_json::from_str(&text).unwrap());
        assert_eq!(decoded.len(), ManagedFields::convert(json!(entries)).len());
        decoded
    }

    fn entry(manager: &str, subresource: &str, time: &str, fields: &Value) -> Value {
        json!({"manager": manager, "subresource": subresource, "time": time, "operation": "Update", "fieldsV1": fields})
    }

    #[test]
    fn the_last_change_of_a_spec_leaves_out_status_and_the_operator() {
        let (spec, status) = (json!({"f:spec": {}}), json!({"f:status": {}}));
        let pinned = json!({"f:metadata": {"f:annotations": {"f:kaos.tools/settings": {}}}});
        let labelled = json!({"f:metadata": {"f:labels": {"f:team": {}}, "f:annotations": {"f:x/y": {}}}});
        let all = [
            entry("kubectl", "", "2026-01-01T00:00:01Z", &spec),
            entry("scaler", "scale", "2026-01-01T00:00:02Z", &spec),
            entry("kubectl-edit", "", "2026-01-01T00:00:03Z", &pinned),
            entry("tool", "", "2026-01-01T00:00:04Z", &labelled),
            entry("someone", "status", "2026-01-01T00:00:05Z", &status),
            entry(metadata::MANAGER, "", "2026-01-01T00:00:06Z", &spec),
        ];
        let changed = |entries: &[Value]| last_change(decoded(entries)).map(String::from);
        assert_eq!(changed(&all[..1]).as_deref(), Some("2026-01-01T00:00:01Z"));
        assert_eq!(changed(&all[..2]).as_deref(), Some("2026-01-01T00:00:02Z"));
        assert_eq!(changed(&all).as_deref(), Some("2026-01-01T00:00:03Z"));
        assert_eq!((changed(&all[3..]), changed(&[])), (None, None));
    }

    #[test]
    fn a_spec_that_another_manager_wrote_is_shared() {
        let shared = |manager: &str, subresource: &str, field: &str| {
            is_shared(&decoded(&[entry(manager, subresource, "2026-01-01T00:00:01Z", &json!({field: {}}))]))
        };
        assert!(shared("somebody", "", "f:spec"));
        assert!(!shared(metadata::MANAGER, "", "f:spec"));
        assert!(!shared("hpa", "scale", "f:spec"));
        assert!(!shared("somebody", "", "f:metadata"));
    }

    #[test]
    fn an_entry_of_another_form_does_not_hide_the_others() {
        let shared = entry("somebody", "", "2026-01-01T00:00:01Z", &json!({"f:spec": {}}));
        for odd in [json!(null), json!(1), json!({"manager": null}), json!({"fieldsV1": []})] {
            assert!(is_shared(&decoded(&[odd, shared.clone()])));
        }
        assert!(ManagedFields::convert(json!(null)).is_empty());
    }
}
