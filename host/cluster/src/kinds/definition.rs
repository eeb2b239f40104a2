//! Rules of `CustomResourceDefinition`s.

use serde_json::{Value, json};

use crate::{
    schema::{pattern, rules},
    status::Cause,
};

/// Fills in the defaults.
pub(super) fn fill(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    if spec["conversion"].is_null() {
        spec["conversion"] = json!({"strategy": "None"});
    }
    let kind = spec["names"]["kind"].as_str().unwrap_or_default().to_owned();
    if spec["names"]["singular"].is_null() {
        spec["names"]["singular"] = json!(kind.to_lowercase());
    }
    if spec["names"]["listKind"].is_null() {
        spec["names"]["listKind"] = json!(format!("{kind}List"));
    }
}

/// Sets the status of a new `CustomResourceDefinition`: the server has not accepted its names yet.
pub(super) fn prepare(object: &mut Value) {
    let versions = object["spec"]["versions"].as_array().into_iter().flatten();
    let stored: Vec<Value> =
        versions.filter(|version| version["storage"] == true).map(|version| version["name"].clone()).collect();
    object["status"] =
        json!({"acceptedNames": {"kind": "", "plural": ""}, "conditions": null, "storedVersions": stored});
}

/// Adds a finalizer to a `CustomResourceDefinition` that is being deleted. The `CustomResourceDefinition` remains until
/// all objects of its types are gone.
pub(crate) fn hold(object: &mut Value, now: &str) {
    let add = |list: &mut Value, item: Value| match list.as_array_mut() {
        Some(list) => list.push(item),
        None => *list = json!([item]),
    };
    add(&mut object["metadata"]["finalizers"], json!("customresourcecleanup.apiextensions.k8s.io"));
    add(
        &mut object["status"]["conditions"],
        json!({"type": "Terminating", "status": "True", "reason": "InstanceDeletionPending", "lastTransitionTime": now,
            "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"}),
    );
}

/// Validates a `CustomResourceDefinition`.
pub(super) fn check(object: &Value) -> Vec<Cause> {
    let spec = &object["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut causes = Vec::new();
    let name = format!("{}.{}", text(&spec["names"]["plural"]), text(&spec["group"]));
    if object["metadata"]["name"] != *name {
        let shown = object["metadata"]["name"].to_string();
        causes.push(Cause::invalid("metadata.name", &shown, "must be spec.names.plural+\".\"+spec.group"));
    }
    for field in ["plural", "kind"] {
        if text(&spec["names"][field]).is_empty() {
            causes.push(Cause::required(&format!("spec.names.{field}"), ""));
        }
    }
    if !matches!(spec["scope"].as_str(), Some("Namespaced" | "Cluster")) {
        causes.push(Cause::unsupported("spec.scope", &spec["scope"], &[json!("Cluster"), json!("Namespaced")]));
    }
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        let message = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid("spec.versions", &shown(versions), message));
    }
    for (at, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{at}].schema.openAPIV3Schema");
        let schema = &version["schema"]["openAPIV3Schema"];
        if schema.is_null() {
            causes.push(Cause::required(&path, "schemas are required"));
        } else {
            structural(schema, &path, &mut causes);
            texts(schema, &path, &mut causes);
        }
    }
    causes
}

fn shown(versions: &[Value]) -> String {
    json!(versions.iter().map(|version| &version["name"]).collect::<Vec<_>>()).to_string()
}

/// Checks that a schema is structural: every node must have a type.
fn structural(schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let open = schema["x-kubernetes-preserve-unknown-fields"] == true || schema["x-kubernetes-int-or-string"] == true;
    if schema["type"].as_str().is_none_or(str::is_empty) && !open {
        causes.push(Cause::required(&format!("{path}.type"), "must not be empty for specified object fields"));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        structural(property, &format!("{path}.properties[{name}]"), causes);
    }
    if schema["items"].is_object() {
        structural(&schema["items"], &format!("{path}.items"), causes);
    }
    if schema["additionalProperties"].is_object() {
        structural(&schema["additionalProperties"], &format!("{path}.additionalProperties"), causes);
    }
    if schema["type"] == "array" && schema["items"].is_null() {
        causes.push(Cause::required(&format!("{path}.items"), "must be specified"));
    }
}

/// Checks that all patterns and rules in a schema compile.
fn texts(schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    if let Some(text) = schema["pattern"].as_str()
        && let Some(why) = pattern::fault(text)
    {
        let message = format!("must be a valid regular expression, but isn't: {why}");
        causes.push(Cause::invalid(&format!("{path}.pattern"), &json!(text).to_string(), &message));
    }
    for (at, rule) in schema["x-kubernetes-validations"].as_array().into_iter().flatten().enumerate() {
        for field in ["rule", "messageExpression"] {
            if let Some(message) = rule[field].as_str().and_then(rules::fault) {
                let field = format!("{path}.x-kubernetes-validations[{at}].{field}");
                causes.push(Cause { reason: "FieldValueInvalid", message, field });
            }
        }
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        texts(property, &format!("{path}.properties[{name}]"), causes);
    }
    for part in ["items", "additionalProperties", "not"] {
        if schema[part].is_object() {
            texts(&schema[part], &format!("{path}.{part}"), causes);
        }
    }
    for junctor in ["allOf", "anyOf", "oneOf"] {
        for (at, part) in schema[junctor].as_array().into_iter().flatten().enumerate() {
            texts(part, &format!("{path}.{junctor}[{at}]"), causes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_without_types_is_refused() {
        let mut object = json!({"metadata": {"name": "as.x"}, "spec": {"group": "x", "scope": "Cluster",
            "names": {"plural": "as", "kind": "A"}, "versions": [{"name": "v1", "storage": true, "served": true,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {}}}}}]}});
        fill(&mut object);
        let causes = check(&object);
        assert_eq!(causes.len(), 1);
        assert_eq!(causes[0].field, "spec.versions[0].schema.openAPIV3Schema.properties[spec].type");
    }

    #[test]
    fn patterns_and_rules_that_cannot_be_compiled_are_named() {
        let rule = format!("self{}", ".a".repeat(500));
        let schema = json!({"type": "string", "pattern": "(", "anyOf": [{"pattern": "[a"}, {"pattern": "^a{2}$"}],
            "x-kubernetes-validations": [{"rule": rule}]});
        let mut causes = Vec::new();
        texts(&schema, "s", &mut causes);
        let fields: Vec<&str> = causes.iter().map(|cause| cause.field.as_str()).collect();
        assert_eq!(fields, ["s.pattern", "s.x-kubernetes-validations[0].rule", "s.anyOf[0].pattern"]);
        assert!(causes[0].message.starts_with("Invalid value: \"(\": must be a valid regular expression, but isn't: "));
    }
}
