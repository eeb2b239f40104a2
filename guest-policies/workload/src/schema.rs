//! Generates the JSON Schema of a policy's settings from the settings type and the `Default` of this type.
//!
//! Every leaf has a default, so that the host can fill in values that no settings layer sets. Only tests and the
//! generator use this module.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The additions of a policy to the schema of its settings type.
#[derive(Debug)]
pub struct Extras<'a> {
    /// Environment variables for leaves of a type that several policies share. Each entry has the path of a leaf and
    /// the name of its variable.
    pub env: &'a [(&'a str, &'a str)],
    /// Settings that an annotation of the object can override. Each entry is the path of a leaf or of
    /// a group. The path of a group stands for all leaves below the group.
    pub annotations: &'a [&'a str],
    /// Settings that only the operator's owner can set. The settings of a namespace cannot change these settings. Each
    /// entry is the path of a leaf or of a group. The path of a group stands for all leaves below the group.
    pub owned: &'a [&'a str],
    /// Settings of the type [`Rare`](crate::Rare). Each entry has the path of the setting and the defaults of the
    /// leaves below it.
    pub rare: &'a [(&'a str, Value)],
}

/// Returns the default values of `T`.
pub fn defaults<T: Default + Serialize>() -> Value {
    serde_json::to_value(T::default()).unwrap_or_default()
}

/// Generates the schema of `T`, without references.
pub fn of<T: JsonSchema + Default + Serialize>(extras: &Extras<'_>) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = SchemaGenerator::new(settings).into_root_schema_for::<T>();
    let mut schema = schema.to_value();
    let defaults = defaults::<T>();
    dress(&mut schema, &defaults, "", extras);
    schema
}

/// Returns the schema as the text of `settings.schema.json`. See [`of`].
pub fn text<T: JsonSchema + Default + Serialize>(extras: &Extras<'_>) -> String {
    format!("{:#}\n", of::<T>(extras))
}

/// Adds to each leaf below `schema` its default, its environment variable, and whether an annotation can set the leaf.
fn dress(schema: &mut Value, default: &Value, path: &str, extras: &Extras<'_>) {
    let Some(schema) = schema.as_object_mut() else { return };
    schema.remove("default");
    // Remove the format of a number, because the bounds already give the range.
    schema.remove("format");
    // Remove the descriptions of a probe's fields: Kubernetes documents these fields, and each component would contain
    // the descriptions twice.
    if path.rsplit_once('.').is_some_and(|(above, _)| above.ends_with("Probe")) {
        schema.remove("description");
    }
    if extras.owned.contains(&path) {
        schema.insert("x-owner".into(), json!(true));
    }
    let rare = extras.rare.iter().find(|(rare, _)| *rare == path);
    let default = rare.map_or(default, |(_, below)| below);
    if rare.is_some() {
        schema.insert("default".into(), Value::Null);
        schema.insert("type".into(), json!(["object", "null"]));
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (name, property) in properties {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            dress(property, &default[name.as_str()], &path, extras);
        }
        schema.remove("required");
        return;
    }
    schema.insert("default".into(), default.clone());
    if let Some((_, variable)) = extras.env.iter().find(|(leaf, _)| *leaf == path) {
        schema.insert("x-env".into(), json!(variable));
    }
    let covers = |root: &&str| path == *root || path.strip_prefix(*root).is_some_and(|rest| rest.starts_with('.'));
    if extras.annotations.iter().any(covers) {
        schema.insert("x-annotation".into(), json!(true));
    }
}

/// Returns the leaves of a schema, each together with its path.
pub fn leaves(schema: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    collect(schema, "", &mut found);
    found
}

fn collect(schema: &Value, path: &str, found: &mut Vec<(String, Value)>) {
    match schema.get("properties").and_then(Value::as_object) {
        Some(properties) => {
            for (name, property) in properties {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                collect(property, &path, found);
            }
        }
        None => found.push((path.to_owned(), schema.clone())),
    }
}

/// Returns `settings` with the leaf at `path` set to `value`.
pub fn with(settings: &Value, path: &str, value: Value) -> Value {
    let mut changed = settings.clone();
    let mut place = &mut changed;
    for name in path.split('.') {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[name];
    }
    *place = value;
    changed
}
