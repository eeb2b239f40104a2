//! Applies a structural schema to an object before validation: removes unknown fields, sets defaults, and removes nulls
//! that have no meaning.

use std::collections::HashSet;

use kaos_policy::near::nearest;
use serde_json::Value;

use super::{Finding, Segment, path};

/// Removes the fields that are not in the schema, and returns them as findings.
pub(super) fn prune(schema: &Value, object: &mut Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    prune_at(schema, object, true, &mut Vec::new(), &mut findings);
    findings
}

/// Removes the undeclared fields of one part of an object, such as its status. `schema` is the schema of this part.
pub(super) fn prune_part(schema: &Value, part: &mut Value) {
    prune_at(schema, part, false, &mut Vec::new(), &mut Vec::new());
}

#[derive(Debug, Clone)]
enum SchemaStep {
    Key(String),
    Index(usize),
}

fn rendered(at: &[SchemaStep]) -> String {
    path(at.iter().map(|step| match step {
        SchemaStep::Key(key) => Segment::Key(key),
        SchemaStep::Index(index) => Segment::Index(*index),
    }))
}

fn prune_at(
    schema: &Value,
    value: &mut Value,
    is_resource: bool,
    at: &mut Vec<SchemaStep>,
    findings: &mut Vec<Finding>,
) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                at.push(SchemaStep::Index(index));
                prune_at(&schema["items"], item, false, at, findings);
                at.pop();
            }
        }
        Value::Object(fields) => {
            let is_resource = is_resource || schema["x-kubernetes-embedded-resource"] == true;
            let keeps_unknown = schema["x-kubernetes-preserve-unknown-fields"] == true;
            let others = &schema["additionalProperties"];
            fields.retain(|key, field| {
                if is_resource && ["apiVersion", "kind", "metadata"].contains(&key.as_str()) {
                    return true;
                }
                let known = schema["properties"].get(key).or(Some(others).filter(|others| others.is_object()));
                at.push(SchemaStep::Key(key.clone()));
                match known {
                    Some(known) => prune_at(known, field, false, at, findings),
                    None if keeps_unknown || *others == Value::Bool(true) => {}
                    None => {
                        let message = match nearest(
                            key,
                            schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()),
                        ) {
                            Some(near) => format!("unknown field, ignored: did you mean {near}?"),
                            None => "unknown field, ignored".to_owned(),
                        };
                        findings.push(Finding { path: rendered(at), message });
                    }
                }
                at.pop();
                known.is_some() || keeps_unknown || *others == Value::Bool(true)
            });
        }
        _ => {}
    }
}

/// Sets the schema's defaults for missing fields, and for nulls that have no meaning. Removes such a null if the field
/// has no default.
pub(super) fn default(schema: &Value, value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| default(&schema["items"], item)),
        Value::Object(fields) => {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                if let Some(preset) = property.get("default") {
                    let field = fields.entry(name).or_insert(Value::Null);
                    if field.is_null() && property["nullable"] != true {
                        *field = preset.clone();
                    }
                }
                if let Some(field) = fields.get_mut(name) {
                    default(property, field);
                }
            }
            let others = &schema["additionalProperties"];
            if others.is_object() {
                fields.values_mut().for_each(|field| default(others, field));
            }
            fields.retain(|name, field| !field.is_null() || may_be_null(schema, name));
        }
        _ => {}
    }
}

/// Returns whether a field may be null. Returns true for fields that are not in the schema.
fn may_be_null(schema: &Value, name: &str) -> bool {
    let others = Some(&schema["additionalProperties"]).filter(|others| others.is_object());
    schema["properties"].get(name).or(others).is_none_or(|known| known["nullable"] == true)
}

/// Returns a finding for each item in a list with unique keys, if an earlier item has the same key.
pub(super) fn repeated_keys(schema: &Value, object: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    repeated_at(schema, object, &mut Vec::new(), &mut findings);
    findings
}

fn repeated_at(schema: &Value, value: &Value, at: &mut Vec<SchemaStep>, findings: &mut Vec<Finding>) {
    match value {
        Value::Array(items) => {
            let keys: Vec<&str> = match schema["x-kubernetes-list-type"].as_str() {
                Some("map") => schema["x-kubernetes-list-map-keys"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .collect(),
                _ => Vec::new(),
            };
            let mut seen = HashSet::new();
            for (index, item) in items.iter().enumerate() {
                at.push(SchemaStep::Index(index));
                let key: Vec<_> = keys.iter().map(|key| item[*key].to_string()).collect();
                if !keys.is_empty() && !seen.insert(key) {
                    let message = format!("repeats an earlier item: {} must differ", keys.join(", "));
                    findings.push(Finding { path: rendered(at), message });
                }
                repeated_at(&schema["items"], item, at, findings);
                at.pop();
            }
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                let known = schema["properties"].get(key).unwrap_or(&schema["additionalProperties"]);
                if known.is_object() {
                    at.push(SchemaStep::Key(key.clone()));
                    repeated_at(known, field, at, findings);
                    at.pop();
                }
            }
        }
        _ => {}
    }
}
