//! OpenAPI. Version 3 has one document for each version of a group. Version 2 has one document in total.
//!
//! Version 2 is only available as JSON. Clients that accept only protobuf get 406.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value, json};

use crate::{
    api::Answer,
    catalogue::{Catalogue, Resource},
    schema::definitions,
    status::ApiError,
};

const PREFIX: &str = "#/components/schemas/";

/// Answers a path below `/openapi`.
pub(in crate::api) fn document(catalogue: &Catalogue, path: &str) -> Result<Answer, ApiError> {
    match path {
        "openapi/v3" => {
            let paths: Map<String, Value> = catalogue
                .groups()
                .into_iter()
                .flat_map(|(group, versions)| versions.into_iter().map(move |version| place(&group, &version)))
                .map(|place| (place.clone(), json!({"serverRelativeURL": format!("/openapi/v3/{place}")})))
                .collect();
            Ok(Answer::Document(json!({"paths": paths})))
        }
        "openapi/v2" => {
            let all: Vec<&Arc<Resource>> = catalogue.all().collect();
            let text = version_3(&all).to_string().replace(PREFIX, "#/definitions/");
            let mut document: Value = serde_json::from_str(&text).unwrap_or_default();
            document["swagger"] = json!("2.0");
            document["definitions"] = document["components"]["schemas"].take();
            if let Some(document) = document.as_object_mut() {
                document.remove("components");
                document.remove("openapi");
            }
            Ok(Answer::Document(document))
        }
        path => {
            let place_of = |resource: &Resource| place(&resource.group, &resource.version);
            let wanted = path.trim_start_matches("openapi/v3/");
            let found: Vec<&Arc<Resource>> = catalogue.all().filter(|resource| place_of(resource) == wanted).collect();
            if found.is_empty() { Err(ApiError::no_route()) } else { Ok(Answer::Document(version_3(&found))) }
        }
    }
}

fn place(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

fn version_3(resources: &[&Arc<Resource>]) -> Value {
    let mut schemas = Map::new();
    let mut wanted: BTreeSet<String> = BTreeSet::from([definitions::OBJECT_META.to_owned()]);
    let mut paths = Map::new();
    for resource in resources {
        let name = match &resource.custom {
            Some(custom) => {
                let name = definition_name(resource);
                schemas.insert(name.clone(), custom_schema(resource, &custom.schema));
                name
            }
            None => {
                definitions::name_of(&resource.group, &resource.version, &resource.kind).unwrap_or_default().to_owned()
            }
        };
        wanted.insert(name.clone());
        describe_paths(resource, &name, &mut paths);
    }
    let all = definitions::all();
    let mut open: Vec<String> = wanted.into_iter().collect();
    while let Some(name) = open.pop() {
        if let Some(schema) = all.get(&name)
            && !schemas.contains_key(&name)
        {
            references(schema, &mut open);
            schemas.insert(name, schema.clone());
        }
    }
    json!({"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1.36.1-embedded"}, "paths": paths,
        "components": {"schemas": schemas}})
}

fn references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(object) => {
            for (key, value) in object {
                match value.as_str().and_then(|text| text.strip_prefix(PREFIX)) {
                    Some(name) if key == "$ref" => found.push(name.to_owned()),
                    _ => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

/// Returns the name of a resource's OpenAPI definition, such as `io.test.v1.Widget` for the kind `Widget` of
/// `test.io/v1`.
fn definition_name(resource: &Resource) -> String {
    let group: Vec<&str> = resource.group.split('.').rev().collect();
    format!("{}.{}.{}", group.join("."), resource.version, resource.kind)
}

fn gvk(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
}

fn custom_schema(resource: &Resource, schema: &Value) -> Value {
    let mut schema = schema.clone();
    let string = |text: &str| json!({"type": "string", "description": text});
    schema["properties"]["apiVersion"] = string("The versioned schema of this representation of an object.");
    schema["properties"]["kind"] = string("The REST resource that this object represents.");
    schema["properties"]["metadata"] = json!({"description": "Standard object's metadata.",
        "allOf": [{"$ref": format!("{PREFIX}{}", definitions::OBJECT_META)}]});
    schema["x-kubernetes-group-version-kind"] = json!([gvk(resource)]);
    schema
}

/// Describes the paths of a resource, from which clients read the resource's kind and the parameters of writes.
fn describe_paths(resource: &Resource, name: &str, paths: &mut Map<String, Value>) {
    let parameter = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string"}});
    let parameters: Vec<Value> = ["dryRun", "fieldManager", "fieldValidation", "force"].map(parameter).into();
    let content = json!({"application/json": {"schema": {"$ref": format!("{PREFIX}{name}")}}});
    let operation = |action: &str| {
        json!({"x-kubernetes-action": action, "x-kubernetes-group-version-kind": gvk(resource), "parameters": parameters,
            "responses": {"200": {"description": "OK", "content": content}}})
    };
    let scope = if resource.namespaced { "namespaces/{namespace}/" } else { "" };
    let base = format!("/{}/{scope}{}", place(&resource.group, &resource.version), resource.plural);
    paths.insert(
        base.clone(),
        json!({"get": operation("list"), "post": operation("post"), "delete": operation("deletecollection")}),
    );
    paths.insert(
        format!("{base}/{{name}}"),
        json!({"get": operation("get"), "put": operation("put"), "patch": operation("patch"), "delete": operation("delete")}),
    );
}
