//! Converts Events between the shape of the core group and the shape of events.k8s.io. The cluster stores Events in the
//! shape of the core group.

use serde_json::{Map, Value};

/// The names of fields in the core group, each with its name in events.k8s.io.
const NAMES: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Converts an Event from the shape of events.k8s.io to the stored shape.
pub(crate) fn to_stored(object: &Value) -> Value {
    rename(object, "v1", |name| NAMES.iter().find(|(_, new)| *new == name).map(|(old, _)| *old))
}

/// Converts a stored Event to the shape of events.k8s.io.
pub(crate) fn from_stored(object: &Value) -> Value {
    rename(object, "events.k8s.io/v1", |name| NAMES.iter().find(|(old, _)| *old == name).map(|(_, new)| *new))
}

/// Adds the fields that Go writes even if they are empty: two timestamps and a source.
pub(super) fn fill(object: &mut Value, [first, last, source]: [&str; 3]) {
    for (field, empty) in [(first, Value::Null), (last, Value::Null), (source, Value::Object(Map::new()))] {
        if object[field].is_null() {
            object[field] = empty;
        }
    }
}

fn rename(object: &Value, api_version: &str, other: impl Fn(&str) -> Option<&'static str>) -> Value {
    let fields = object.as_object().into_iter().flatten();
    let mut out: Map<String, Value> =
        fields.map(|(name, value)| (other(name).unwrap_or(name).to_owned(), value.clone())).collect();
    out.insert("apiVersion".into(), api_version.into());
    Value::Object(out)
}
