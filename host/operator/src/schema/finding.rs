//! Describes values that a JSON Schema does not accept, with their paths.

use jsonschema::{error::ValidationErrorKind, paths::LocationSegment};
use kaos_policy::objections::Objection;

use super::{Finding, Segment, path};

/// Returns the path and the message of a value that a schema does not accept. `schema` names the schema in the message.
pub(crate) fn finding(objection: &Objection<'_>, schema: &str) -> Finding {
    let Objection { error, must, remedy } = objection;
    let mut segments: Vec<String> = Vec::new();
    let mut indices = Vec::new();
    for segment in error.instance_path() {
        match segment {
            LocationSegment::Property(name) => segments.push(name.to_string()),
            LocationSegment::Index(index) => {
                indices.push(segments.len());
                segments.push(index.to_string());
            }
        }
    }
    let message = if let ValidationErrorKind::Required { property } = error.kind() {
        segments.push(property.as_str().unwrap_or_default().to_owned());
        format!("missing: {schema} requires it")
    } else {
        // The message does not contain the value, because the value may be a password, or long.
        let came = objection.came().map(|came| format!(", but is {came}")).unwrap_or_default();
        let empty =
            error.instance().is_null().then_some("a field without a value is null: write a value, or remove the field");
        let remedy = empty.or(remedy.as_deref()).map(|remedy| format!(": {remedy}")).unwrap_or_default();
        format!("{must}{came}{remedy}")
    };
    let path = path(segments.iter().enumerate().map(|(at, segment)| match segment.parse() {
        Ok(index) if indices.contains(&at) => Segment::Index(index),
        _ => Segment::Key(segment),
    }));
    Finding { path, message }
}
