//! Records the OpenAPI schemas of the kinds that the embedded cluster serves, as a real API server publishes these
//! schemas.
//!
//! The descriptions in the schemas come from Kubernetes, which has the license Apache-2.0.

use std::collections::BTreeMap;

use http::Request;
use kube::Client;
use serde_json::{Map, Value};

const PREFIX: &str = "#/components/schemas/";

/// The kinds by the path of their OpenAPI document.
const KINDS: [(&str, &[&str]); 10] = [
    (
        "api/v1",
        &[
            "Namespace",
            "ConfigMap",
            "Secret",
            "Service",
            "ServiceAccount",
            "Event",
            "Pod",
            "Node",
            "Binding",
            "PersistentVolumeClaim",
        ],
    ),
    ("apis/apps/v1", &["Deployment", "ReplicaSet", "StatefulSet", "Scale"]),
    ("apis/batch/v1", &["Job"]),
    ("apis/policy/v1", &["PodDisruptionBudget"]),
    ("apis/coordination.k8s.io/v1", &["Lease"]),
    ("apis/events.k8s.io/v1", &["Event"]),
    ("apis/discovery.k8s.io/v1", &["EndpointSlice"]),
    ("apis/rbac.authorization.k8s.io/v1", &["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"]),
    ("apis/authorization.k8s.io/v1", &["SelfSubjectAccessReview", "SubjectAccessReview", "SelfSubjectRulesReview"]),
    ("apis/apiextensions.k8s.io/v1", &["CustomResourceDefinition"]),
];

/// Returns the schemas of the kinds, and all schemas to which these schemas refer.
pub(super) async fn of(client: &Client) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for (path, kinds) in KINDS {
        let request = Request::get(format!("/openapi/v3/{path}")).body(Vec::new()).unwrap();
        let document: Value = client.request(request).await.unwrap();
        collect(&document["components"]["schemas"], path, kinds, &mut found);
    }
    found
}

/// Writes one schema per line, so that a comparison of versions shows the schemas that changed.
pub(super) fn written(schemas: &BTreeMap<String, Value>) -> String {
    let lines: Vec<String> =
        schemas.iter().map(|(name, schema)| format!("{}: {schema}", Value::from(name.as_str()))).collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

fn collect(schemas: &Value, path: &str, kinds: &[&str], found: &mut BTreeMap<String, Value>) {
    let place = path.trim_start_matches("apis/").trim_start_matches("api/");
    let (group, version) = place.split_once('/').unwrap_or(("", place));
    let is_wanted = |of: &Value| {
        kinds.iter().any(|kind| of["kind"] == *kind)
            && (of["group"] == group || of["group"] == "autoscaling")
            && of["version"] == version
    };
    let mut todo: Vec<String> = schemas
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, schema)| types(schema).iter().any(is_wanted))
        .map(|(name, _)| name.clone())
        .collect();
    while let Some(name) = todo.pop() {
        if found.contains_key(&name) {
            continue;
        }
        let mut schema = tidy(&schemas[&name]);
        // Remove the list of groups from a type that belongs to several groups, such as `DeleteOptions`.
        if types(&schema).len() > 1
            && let Some(schema) = schema.as_object_mut()
        {
            schema.remove("x-kubernetes-group-version-kind");
        }
        references(&schema, &mut todo);
        found.insert(name, schema);
    }
}

fn types(schema: &Value) -> &[Value] {
    schema["x-kubernetes-group-version-kind"].as_array().map_or(&[], Vec::as_slice)
}

fn references(node: &Value, names: &mut Vec<String>) {
    match node {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str() {
                    Some(target) if name == "$ref" => names.push(target.trim_start_matches(PREFIX).to_owned()),
                    _ => references(value, names),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, names)),
        _ => {}
    }
}

/// Removes each `default` with a zero value, because Kubernetes' generator of schemas adds such a default to each
/// required field. Also replaces a list that contains a single schema by this schema.
fn tidy(node: &Value) -> Value {
    match node {
        Value::Object(fields) => {
            let mut fields: Map<String, Value> = fields.clone();
            if fields.get("default").is_some_and(is_zero) {
                fields.remove("default");
            }
            if let Some(Value::Array(all)) = fields.get("allOf")
                && let [Value::Object(only)] = all.as_slice()
            {
                let only = only.clone();
                fields.remove("allOf");
                fields.extend(only);
            }
            fields.iter().map(|(name, value)| (name.clone(), tidy(value))).collect()
        }
        Value::Array(items) => items.iter().map(tidy).collect(),
        other => other.clone(),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Array(_) => false,
    }
}
