//! Discovery: lists groups, versions and resources, in separate documents or in one document.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Answer;
use crate::{
    catalogue::{Catalogue, Resource},
    status::ApiError,
};

/// Returns the document at `/version`.
pub(super) fn version(minor: u32) -> Value {
    json!({"major": "1", "minor": minor.to_string(), "gitVersion": format!("v1.{minor}.1-embedded"), "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc", "platform": "in-memory"})
}

/// Answers a discovery request.
pub(super) fn document(catalogue: &Catalogue, path: &str, accept: &str) -> Result<Answer, ApiError> {
    let aggregated = accept.contains("as=APIGroupDiscoveryList") && accept.contains("v=v2");
    let parts: Vec<&str> = path.split('/').collect();
    Ok(match parts.as_slice() {
        ["api"] if aggregated => Answer::Discovery(all(catalogue, str::is_empty)),
        ["apis"] if aggregated => Answer::Discovery(all(catalogue, |group| !group.is_empty())),
        ["api"] => Answer::Document(json!({"kind": "APIVersions", "apiVersion": "v1", "versions": ["v1"],
            "serverAddressByClientCIDRs": []})),
        ["apis"] => {
            let groups: Vec<Value> =
                catalogue.groups().iter().filter(|(name, _)| !name.is_empty()).map(group).collect();
            Answer::Document(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        ["apis", name] => {
            let groups = catalogue.groups();
            let found =
                groups.get_key_value(*name).filter(|(name, _)| !name.is_empty()).ok_or_else(ApiError::no_page)?;
            let mut document = group(found);
            document["kind"] = json!("APIGroup");
            document["apiVersion"] = json!("v1");
            Answer::Document(document)
        }
        ["api", version] => resources(catalogue, "", version)?,
        ["apis", group, version] => resources(catalogue, group, version)?,
        [""] => Answer::Document(
            json!({"paths": ["/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]}),
        ),
        _ => return Err(ApiError::no_page()),
    })
}

fn group((name, versions): (&String, &Vec<String>)) -> Value {
    let version = |version: &String| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    json!({"name": name, "versions": versions.iter().map(version).collect::<Vec<_>>(),
        "preferredVersion": versions.first().map(version)})
}

fn resources(catalogue: &Catalogue, group: &str, version: &str) -> Result<Answer, ApiError> {
    let found: Vec<&Arc<Resource>> =
        catalogue.all().filter(|resource| resource.group == group && resource.version == version).collect();
    let first = found.first().ok_or_else(ApiError::no_page)?;
    let mut list = Vec::new();
    for resource in &found {
        let mut entry = json!({"name": resource.plural, "singularName": resource.singular,
            "namespaced": resource.namespaced, "kind": resource.kind, "verbs": resource.verbs});
        for (field, names) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
            if !names.is_empty() {
                entry[field] = json!(names);
            }
        }
        list.push(entry);
        for (name, group, version, kind) in subresources(resource) {
            let mut entry = json!({"name": format!("{}/{name}", resource.plural), "singularName": "",
                "namespaced": resource.namespaced, "kind": kind, "verbs": ["get", "patch", "update"]});
            if group != resource.group {
                entry["group"] = json!(group);
                entry["version"] = json!(version);
            }
            list.push(entry);
        }
    }
    Ok(Answer::Document(json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": first.api_version(),
        "resources": list})))
}

fn subresources(resource: &Resource) -> Vec<(&'static str, &str, &str, &str)> {
    let mut found = Vec::new();
    if resource.scale.is_some() {
        found.push(("scale", "autoscaling", "v1", "Scale"));
    }
    if resource.status {
        found.push(("status", resource.group.as_str(), resource.version.as_str(), resource.kind.as_str()));
    }
    found
}

/// Returns all groups in one document (`apidiscovery.k8s.io/v2`).
fn all(catalogue: &Catalogue, wanted: impl Fn(&str) -> bool) -> Value {
    let items: Vec<Value> = catalogue
        .groups()
        .iter()
        .filter(|(name, _)| wanted(name))
        .map(|(name, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|version| {
                    let resources: Vec<Value> = catalogue
                        .all()
                        .filter(|resource| resource.group == *name && resource.version == *version)
                        .map(|resource| aggregated(resource))
                        .collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            json!({"metadata": {"name": name, "creationTimestamp": null}, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated(resource: &Resource) -> Value {
    let kind = |group: &str, version: &str, kind: &str| json!({"group": group, "version": version, "kind": kind});
    let subresources: Vec<Value> = subresources(resource)
        .into_iter()
        .map(|(name, group, version, of)| {
            json!({"subresource": name, "responseKind": kind(group, version, of), "verbs": ["get", "patch", "update"]})
        })
        .collect();
    let mut entry = json!({"resource": resource.plural,
        "responseKind": kind(&resource.group, &resource.version, &resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular, "verbs": resource.verbs});
    for (field, names) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
        if !names.is_empty() {
            entry[field] = json!(names);
        }
    }
    if !subresources.is_empty() {
        entry["subresources"] = json!(subresources);
    }
    entry
}
