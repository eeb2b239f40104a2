//! Checks an object offline against the schema of its CRD, in the way of an API server.
//!
//! This admission drops and reports unknown fields, sets defaults, drops nulls without a meaning, and validates the
//! other fields. It does not evaluate the CEL rules of a CRD, because the policies refuse the same objects.

mod crd;
mod finding;
mod json_schema;
mod path;
mod structural;

use std::collections::HashMap;

use kaos_policy::contract::{ResourceType, Scopes};
use serde_json::Value;

use crate::definitions::embedded;

pub use crd::{Crd, CrdError};
pub(crate) use finding::finding;
pub use path::Finding;
pub(crate) use path::{Segment, path};

/// The result of admission.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// The dropped unknown fields.
    pub unknown: Vec<Finding>,
    /// The reasons why the API server would refuse the object.
    pub violations: Vec<Finding>,
}

/// The known CRDs.
#[derive(Debug, Default)]
pub struct KnownCrds {
    by_type: HashMap<(String, String), Crd>,
    scopes: Scopes,
}

impl KnownCrds {
    /// Returns the CRDs that are embedded in the binary.
    pub fn embedded() -> Result<Self, CrdError> {
        let mut catalogue = Self::default();
        for definition in embedded() {
            catalogue.add(Crd::new(&definition)?);
        }
        Ok(catalogue)
    }

    /// Adds a CRD. Replaces an existing CRD with the same group and kind.
    pub fn add(&mut self, crd: Crd) {
        self.scopes.define(&crd.group, &crd.kind, crd.is_cluster_scoped);
        self.by_type.insert((crd.group.clone(), crd.kind.clone()), crd);
    }

    /// Returns which types are namespaced, and which are cluster-scoped.
    pub fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// Adds the scopes of types whose CRD is not known.
    pub fn add_scopes(&mut self, scopes: &Scopes) {
        self.scopes.add(scopes);
    }

    /// Returns the kinds of a group.
    pub fn kinds(&self, group: &str) -> impl Iterator<Item = &str> {
        self.by_type.keys().filter(move |(of, _)| of == group).map(|(_, kind)| kind.as_str())
    }

    /// Returns the schema of a type; `None` if no CRD serves the type.
    pub fn schema(&self, of: &ResourceType) -> Option<&Value> {
        let crd = self.by_type.get(&(of.group().to_owned(), of.kind.clone()))?;
        crd.version(&of.api_version).map(|version| &version.schema)
    }

    /// Changes and checks an object, as an API server does before it stores an object. Leaves an object without a CRD
    /// unchanged. Ignores `status`, because the server does not accept a status from users.
    pub fn admit(&self, group: &str, kind: &str, object: &mut Value) -> Admission {
        let Some(crd) = self.by_type.get(&(group.to_owned(), kind.to_owned())) else { return Admission::default() };
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        let Some(version) = crd.version(api_version) else {
            let message = format!("{api_version} is not served; {kind} is served as {}", crd.served().join(", "));
            return Admission { unknown: vec![], violations: vec![Finding { path: "apiVersion".into(), message }] };
        };
        let status = object.as_object_mut().and_then(|object| object.remove("status"));
        let unknown = structural::prune(&version.schema, object);
        structural::default(&version.schema, object);
        if let Some(metadata) = object.get_mut("metadata") {
            structural::default(&json_schema::metadata(), metadata);
        }
        let violations = version.violations(object);
        if let (Some(status), Some(object)) = (status, object.as_object_mut()) {
            object.insert("status".to_owned(), status);
        }
        Admission { unknown, violations }
    }
}

/// Removes the fields of a status that `schema` does not declare.
pub fn project(schema: &Value, status: &mut Value) {
    structural::prune_part(schema, status);
}

/// Returns the schema of the status of type `of` from a CRD. `None` if the CRD has no such version or no status schema.
pub fn status_of(crd: &Value, of: &ResourceType) -> Option<Value> {
    let version = of.api_version.rsplit_once('/')?.1;
    let versions = crd["spec"]["versions"].as_array()?;
    let version = versions.iter().find(|candidate| candidate["name"] == version)?;
    version.pointer("/schema/openAPIV3Schema/properties/status").cloned()
}

/// Returns the schema of the status of type `of` from the `OpenAPI` document of an API group. `None` if the document
/// has no such schema.
pub fn documented_status_of(document: &Value, of: &ResourceType) -> Option<Value> {
    let is_it = |schema: &&Value| {
        let means = schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten();
        let version = of.api_version.rsplit_once('/').map_or("", |(_, version)| version);
        means
            .into_iter()
            .any(|gvk| gvk["group"] == *of.group() && gvk["version"] == *version && gvk["kind"] == *of.kind)
    };
    let schema = document["components"]["schemas"].as_object()?.values().find(is_it)?;
    schema.pointer("/properties/status").cloned()
}

/// Returns the schema of the status of type `of` from an embedded CRD. `None` if no embedded CRD has such a schema.
pub fn embedded_status_of(of: &ResourceType) -> Option<Value> {
    let is_it = |crd: &Value| crd["spec"]["group"] == *of.group() && crd["spec"]["names"]["kind"] == *of.kind;
    status_of(&embedded().find(is_it)?, of)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn catalogue() -> KnownCrds {
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "kites.example.org"},
            "spec": {"group": "example.org", "scope": "Namespaced", "names": {"kind": "Kite", "plural": "kites"}, "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": {"spec": {
                    "type": "object", "required": ["colour"],
                    "properties": {
                        "colour": {"type": "string", "enum": ["red", "blue"]},
                        "length": {"type": "integer", "format": "int32", "minimum": 1, "default": 3},
                        "tail": {"type": "object", "default": {}, "properties": {"bows": {"type": "integer", "format": "int32", "default": 5}}},
                        "limit": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                        "owner": {"type": "string", "nullable": true},
                        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                        "marks": {"type": "object", "additionalProperties": {"type": "string"}},
                        "env": {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "value": {"type": "string"}}},
                                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
                    }
                }}}}
            }]}
        });
        let mut catalogue = KnownCrds::default();
        catalogue.add(Crd::new(&crd).unwrap());
        catalogue
    }

    fn admit(spec: &Value) -> (Value, Vec<String>, Vec<String>) {
        let mut object = json!({"apiVersion": "example.org/v1", "kind": "Kite", "metadata": {"name": "a"}, "spec": spec, "status": {"odd": 1}});
        let Admission { unknown, violations } = catalogue().admit("example.org", "Kite", &mut object);
        let text =
            |findings: Vec<Finding>| findings.into_iter().map(|f| format!("{}: {}", f.path, f.message)).collect();
        assert_eq!(object["status"]["odd"], 1);
        (object["spec"].take(), text(unknown), text(violations))
    }

    #[test]
    fn defaults_are_filled_in_also_inside_of_defaults_and_for_nulls() {
        let (spec, unknown, violations) = admit(&json!({"colour": "red", "length": null, "owner": null}));
        assert_eq!(spec, json!({"colour": "red", "length": 3, "owner": null, "tail": {"bows": 5}}));
        assert_eq!((unknown, violations), (vec![], vec![]));
    }

    #[test]
    fn a_null_without_meaning_counts_as_an_absent_field() {
        let (spec, unknown, violations) = admit(&json!({
            "colour": "red", "limit": null, "owner": null, "tail": {"bows": null}, "free": {"any": null},
            "marks": {"a": null, "b": "c"}, "env": [{"name": "A", "value": null}],
        }));
        let wanted = json!({
            "colour": "red", "length": 3, "owner": null, "tail": {"bows": 5}, "free": {"any": null},
            "marks": {"b": "c"}, "env": [{"name": "A"}],
        });
        assert_eq!((spec, unknown, violations), (wanted, vec![], vec![]));
        let (_, _, violations) = admit(&json!({"colour": null, "env": [null]}));
        assert_eq!(violations.len(), 2, "{violations:?}");
        assert_eq!(violations[0], "spec.colour: missing: the kind's schema requires it");
        assert!(violations[1].starts_with("spec.env[0]: "), "an item cannot be left out: {violations:?}");
    }

    #[test]
    fn empty_metadata_is_ignored() {
        let metadata = json!({"name": "a", "labels": null, "annotations": {"a": null, "b": "c"}});
        let spec = json!({"colour": "red"});
        let mut object = json!({"apiVersion": "example.org/v1", "kind": "Kite", "metadata": metadata, "spec": spec});
        assert_eq!(catalogue().admit("example.org", "Kite", &mut object), Admission::default());
        assert_eq!(object["metadata"], json!({"name": "a", "annotations": {"b": "c"}}));
    }

    #[test]
    fn unknown_fields_are_dropped_and_reported_unless_the_schema_preserves_them() {
        let (spec, unknown, violations) = admit(&json!({
            "colour": "red", "size": 1, "free": {"any": {"thing": 1}}, "env": [{"name": "A", "valeu": "b"}],
        }));
        assert!(spec["size"].is_null() && spec["env"][0]["valeu"].is_null());
        assert_eq!(spec["free"]["any"]["thing"], 1);
        assert_eq!(
            unknown,
            ["spec.env[0].valeu: unknown field, ignored: did you mean value?", "spec.size: unknown field, ignored"]
        );
        assert_eq!(violations, [""; 0]);
    }

    #[test]
    fn violations_name_the_path_but_not_the_value() {
        let (_, _, violations) = admit(&json!({
            "colour": "s3cret", "length": 0, "limit": [], "marks": {"a/b": 1}, "env": [{"name": "A"}, {"name": "A"}, {}],
        }));
        let all = violations.join("\n");
        for path in [
            "spec.colour: ",
            "spec.length: ",
            "spec.limit: ",
            "spec.marks[\"a/b\"]: ",
            "spec.env[2].name: ",
            "spec.env[1]: ",
        ] {
            assert!(all.contains(path), "{path} in {all}");
        }
        assert!(!all.contains("s3cret"), "{all}");
    }

    #[test]
    fn a_violation_names_the_accepted_the_found_and_the_remedy() {
        let (_, _, violations) = admit(&json!({
            "colour": "Blue", "length": "3", "limit": [], "marks": {"a": true}, "env": {"name": "A"}, "owner": {},
        }));
        assert_eq!(
            violations,
            [
                "spec.colour: must be one of \"red\", \"blue\": write blue",
                "spec.env: must be a list, but is an object: begin each item with -",
                "spec.length: must be a whole number, but is a text: write it without quotes",
                "spec.limit: must be a whole number or a text, but is a list",
                "spec.marks.a: must be a text, but is true or false: put it in quotes",
                "spec.owner: must be a text or null, but is an object",
            ]
        );
    }

    #[test]
    fn numbers_too_large_for_their_format_are_refused() {
        let (_, _, violations) = admit(&json!({"colour": "red", "length": 3_000_000_000_i64}));
        assert!(violations[0].starts_with("spec.length: "), "{violations:?}");
    }

    #[test]
    fn a_version_that_is_not_served_is_a_violation() {
        let mut object = json!({"apiVersion": "example.org/v2", "kind": "Kite", "metadata": {"name": "a"}});
        let admission = catalogue().admit("example.org", "Kite", &mut object);
        assert_eq!(admission.violations[0].message, "example.org/v2 is not served; Kite is served as example.org/v1");
    }

    #[test]
    fn a_status_keeps_only_the_fields_that_its_kind_declares() {
        let of = ResourceType::new("kaos.tools/v1alpha1", kaos_kind());
        let schema = embedded_status_of(&of).unwrap();
        let mut status = serde_json::json!({
            "phase": "Ready", "odd": 1, "conditions": [{"type": "A", "status": "True", "odd": 1}],
            "deployment": {"replicas": 1, "odd": 1}, "linkedResources": {"anything": "goes"},
        });
        project(&schema, &mut status);
        assert_eq!(
            status,
            serde_json::json!({
                "phase": "Ready", "conditions": [{"type": "A", "status": "True"}],
                "deployment": {"replicas": 1}, "linkedResources": {"anything": "goes"},
            })
        );
        assert!(embedded_status_of(&ResourceType::new("example.org/v1", "Kite")).is_none());
    }

    /// Returns an arbitrary embedded kind: the code of the host must not name kinds.
    fn kaos_kind() -> String {
        embedded().next().unwrap()["spec"]["names"]["kind"].as_str().unwrap().to_owned()
    }

    #[test]
    fn metadata_is_checked_as_for_every_kind() {
        let mut object = json!({"apiVersion": "example.org/v1", "kind": "Kite",
            "metadata": {"name": "Not_a_name", "labels": {"on": true}}, "spec": {"colour": "red"}});
        let admission = catalogue().admit("example.org", "Kite", &mut object);
        let paths: Vec<_> = admission.violations.iter().map(|finding| &*finding.path).collect();
        assert_eq!(paths, ["metadata.labels.on", "metadata.name"]);
    }
}
