//! Compares the variables in the plan's mapping with the `env` of the containers in the manifests.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{Rule, breaches::Breaches, manifest, rules::Rules};
use crate::{
    contract::{EnvSource, EnvVar, KeySelector},
    cut::{VALUE, cut},
    digest::canonical,
    pods,
};

/// A variable: its container's name and its own name.
type VariableKey<'a> = (&'a str, &'a str);

/// Compares the mapping with the manifests.
pub(super) fn check(mapping: &[EnvVar], manifests: &[Value], rules: &Rules<'_>, breaches: &mut Breaches) {
    let mut mapped: BTreeMap<VariableKey<'_>, Value> = BTreeMap::new();
    let mut is_overlays = false;
    for (i, var) in mapping.iter().enumerate() {
        let path = format!("env[{i}]");
        if var.name.is_empty() || var.name.contains(['=', '\0']) {
            let author = rules.author(&var.container, &var.name);
            let message = format_args!("`{}` is not a valid name of a variable", var.name);
            breaches.add_of(author, Rule::ValidNames, &path, message);
        }
        let Some(source) = source(&var.source) else {
            let message = format_args!("the source of variable {} is not a JSON object", var.name);
            breaches.add_of(rules.author(&var.container, &var.name), Rule::JsonObjects, path, message);
            continue;
        };
        if mapped.insert((&var.container, &var.name), source).is_some() {
            let author = rules.author(&var.container, &var.name);
            is_overlays |= author != 0;
            let message = format_args!("container {} has the variable {} twice", var.container, var.name);
            breaches.add_of(author, Rule::NoDuplicateEnv, path, message);
        }
    }
    if is_overlays {
        // The policy repeats the overlay's mistake in the manifests. Report only the mistake of the overlay.
        return;
    }
    let mut carried: BTreeSet<VariableKey<'_>> = BTreeSet::new();
    let mut containers: BTreeSet<&str> = BTreeSet::new();
    for (i, value) in manifests.iter().enumerate() {
        let label = manifest::path(i, value);
        for (at, spec) in pods::specs(value, false) {
            for (within, container) in pods::containers(spec) {
                containers.extend(container["name"].as_str());
                let path = format!("{label} {at}.{within}.env");
                carry(&path, container, &mapped, &mut carried, breaches);
            }
        }
    }
    for (container, name) in mapped.keys().filter(|key| !carried.contains(*key)) {
        // If the plan has the container, the policy has failed to add the overlay's variable to the container. If the
        // plan lacks the container, the variable is a mistake of the overlay.
        let author = if containers.contains(container) { 0 } else { rules.author(container, name) };
        let message = format_args!("has the variable {name} of container {container}, but no manifest has it");
        breaches.add_of(author, Rule::EnvAsMapped, "env", message);
    }
}

fn carry<'a>(
    path: &str,
    container: &'a Value,
    mapped: &BTreeMap<VariableKey<'a>, Value>,
    carried: &mut BTreeSet<VariableKey<'a>>,
    breaches: &mut Breaches,
) {
    let container_name = container["name"].as_str().unwrap_or_default();
    let mut here = BTreeSet::new();
    for (i, entry) in container["env"].as_array().into_iter().flatten().enumerate() {
        let path = format_args!("{path}[{i}]");
        let Some(name) = entry["name"].as_str() else {
            breaches.add(Rule::WellFormed, path, "has no name");
            continue;
        };
        if !here.insert(name) {
            breaches.add(Rule::NoDuplicateEnv, path, format_args!("variable {name} occurs twice"));
        }
        carried.insert((container_name, name));
        let Some(wanted) = mapped.get(&(container_name, name)) else {
            breaches.add(Rule::EnvAsMapped, path, format_args!("variable {name} is not in the plan's mapping"));
            continue;
        };
        match carried_source(entry) {
            None => {
                let message = format_args!("variable {name} must have a text `value` or an object `valueFrom`");
                breaches.add(Rule::WellFormed, path, message);
            }
            Some(found) if found != *wanted => {
                if breaches.is_full() {
                    return;
                }
                let (found, wanted) = (canonical(&found), canonical(wanted));
                let (found, wanted) = (cut(&found, VALUE), cut(&wanted, VALUE));
                let message = format_args!("variable {name} is {found}, but the plan's mapping has {wanted}");
                breaches.add(Rule::EnvAsMapped, path, message);
            }
            Some(_) => {}
        }
    }
}

/// Converts the source of a mapped variable into the JSON of an `env` entry in a manifest. Leaves out fields that only
/// repeat a default.
fn source(source: &EnvSource) -> Option<Value> {
    let value_from = |field: &str, value: Value| {
        let mut fields = Map::new();
        fields.insert(field.to_owned(), value);
        normal(json!({ "valueFrom": fields }))
    };
    let selector =
        |KeySelector { name, key, optional }: &KeySelector| json!({ "name": name, "key": key, "optional": optional });
    Some(match source {
        EnvSource::Literal(value) => json!({ "value": value }),
        EnvSource::SecretKey(key) => value_from("secretKeyRef", selector(key)),
        EnvSource::ConfigMapKey(key) => value_from("configMapKeyRef", selector(key)),
        EnvSource::FieldPath(path) => value_from("fieldRef", json!({ "fieldPath": path })),
        EnvSource::Other(text) => {
            let other: Map<String, Value> = serde_json::from_str(text).ok()?;
            normal(json!({ "valueFrom": other }))
        }
    })
}

/// Converts an `env` entry of a manifest to the form that [`source`] returns.
fn carried_source(entry: &Value) -> Option<Value> {
    let value_from = entry.get("valueFrom").filter(|value| !value.is_null());
    match (entry.get("value").filter(|value| !value.is_null()), value_from) {
        (None, None) => Some(json!({ "value": "" })),
        (Some(Value::String(value)), None) => Some(json!({ "value": value })),
        (None, Some(Value::Object(from))) => Some(normal(json!({ "valueFrom": from }))),
        // If an entry has `valueFrom` and an empty `value`, ignore the `value`.
        (Some(Value::String(value)), Some(Value::Object(from))) if value.is_empty() => {
            Some(normal(json!({ "valueFrom": from })))
        }
        _ => None,
    }
}

/// Removes the fields that have their default value.
fn normal(mut source: Value) -> Value {
    for selector in ["secretKeyRef", "configMapKeyRef"] {
        if let Some(fields) = source["valueFrom"].get_mut(selector).and_then(Value::as_object_mut)
            && fields.get("optional").is_some_and(|optional| *optional == false || optional.is_null())
        {
            fields.remove("optional");
        }
    }
    if let Some(fields) = source["valueFrom"].get_mut("fieldRef").and_then(Value::as_object_mut)
        && fields.get("apiVersion").is_some_and(|version| version == "v1")
    {
        fields.remove("apiVersion");
    }
    source
}
