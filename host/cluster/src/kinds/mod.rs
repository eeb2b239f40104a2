//! The server's rules for each built-in kind: the stored form, defaults, fields that clients cannot set, and
//! validation.
//!
//! This module implements only rules that clients of this cluster can observe. A real server has more rules.

mod blank;
mod budget;
mod claim;
mod container;
mod data;
mod definition;
mod deployment;
mod event;
mod job;
mod names;
mod pod;
mod service;
mod stateful_set;
mod wire;

use serde_json::{Value, json};

use crate::{
    apply::FieldSet,
    catalogue::{Family, Resource},
    status::Cause,
};

pub(crate) use blank::blank;
pub(crate) use definition::hold as hold_definition;
pub(crate) use deployment::{count, share};
pub(crate) use event::{from_stored as event_from_stored, to_stored as event_to_stored};
pub(crate) use service::Addresses;

/// Converts a decoded object to its stored form, with defaults.
pub(crate) fn normalise(resource: &Resource, object: &mut Value) {
    if resource.family != Family::Custom {
        wire::tidy(object, &resource.node);
    }
    match resource.family {
        Family::Deployment => deployment::fill(object),
        Family::ReplicaSet => deployment::fill_replica_set(object),
        Family::StatefulSet => stateful_set::fill(object),
        Family::Job => job::fill(object),
        Family::Pod => pod::fill(object),
        Family::Service => service::fill(object),
        Family::Secret => data::fill_secret(object),
        Family::Claim => claim::fill(object),
        Family::Event => event::fill(object, ["firstTimestamp", "lastTimestamp", "source"]),
        Family::NewEvent => {
            event::fill(object, ["deprecatedFirstTimestamp", "deprecatedLastTimestamp", "deprecatedSource"]);
        }
        Family::Namespace if object["metadata"]["name"].is_string() => {
            let name = object["metadata"]["name"].clone();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
        }
        Family::Definition => definition::fill(object),
        Family::Custom => crate::schema::defaults::fill(object, &resource.node),
        _ => {}
    }
}

/// Returns the error of Go's decoder for an object of a built-in kind; `None` without an error. Ignores wrong types,
/// because `decode` reports them.
pub(crate) fn undecodable(resource: &Resource, object: &Value) -> Option<String> {
    match resource.family {
        Family::ConfigMap | Family::Secret => data::undecodable(resource.family, object),
        Family::Deployment | Family::ReplicaSet | Family::StatefulSet => deployment::overflow(object),
        _ => None,
    }
}

/// Validates a label.
pub(crate) fn wrong_label(key: &str, value: &str) -> Option<Cause> {
    names::labels(&json!({key: value}), "").into_iter().next()
}

/// Sets the fields that only the server sets in a new object.
pub(crate) fn prepare_create(resource: &Resource, object: &mut Value) {
    match resource.family {
        Family::Custom if !resource.status => {}
        Family::Pod => pod::prepare(object),
        Family::Namespace => {
            object["spec"] = json!({"finalizers": ["kubernetes"]});
            object["status"] = json!({"phase": "Active"});
        }
        Family::Definition => definition::prepare(object),
        Family::Deployment | Family::ReplicaSet => object["status"] = json!({}),
        Family::StatefulSet => object["status"] = json!({"replicas": 0, "availableReplicas": 0}),
        Family::Job => job::prepare(object),
        Family::Budget => {
            let none = ["currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"];
            object["status"] = none.into_iter().map(|field| (field.to_owned(), json!(0))).collect();
        }
        Family::Service => object["status"] = json!({"loadBalancer": {}}),
        Family::Claim => object["status"] = json!({"phase": "Pending"}),
        _ if resource.status => drop(object.as_object_mut().and_then(|object| object.remove("status"))),
        _ => {}
    }
    if resource.family == Family::ReplicaSet {
        object["status"] = json!({"replicas": 0});
    }
    if has_generation(resource) {
        object["metadata"]["generation"] = json!(1);
    } else if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("generation");
    }
}

fn has_generation(resource: &Resource) -> bool {
    use Family::{Budget, Custom, Definition, Deployment, EndpointSlice, Job, Pod, ReplicaSet, StatefulSet};
    matches!(
        resource.family,
        Budget | Custom | Definition | Deployment | EndpointSlice | Job | Pod | ReplicaSet | StatefulSet
    )
}

/// Returns whether an update through the main endpoint raises the generation.
pub(crate) fn raises_generation(resource: &Resource, old: &Value, new: &Value) -> bool {
    if !has_generation(resource) {
        return false;
    }
    let annotations = |object: &Value| object["metadata"]["annotations"].clone();
    match resource.family {
        Family::Deployment => old["spec"] != new["spec"] || annotations(old) != annotations(new),
        Family::Custom => {
            let content = |object: &Value| {
                let mut object = object.clone();
                if let Some(fields) = object.as_object_mut() {
                    fields.remove("metadata");
                    if resource.status {
                        fields.remove("status");
                    }
                }
                object
            };
            content(old) != content(new)
        }
        _ => old["spec"] != new["spec"] || old["endpoints"] != new["endpoints"],
    }
}

/// Returns the fields that no write through this endpoint can change.
pub(crate) fn reset_fields(resource: &Resource, subresource: &str) -> FieldSet {
    match (subresource, resource.family) {
        ("status", Family::Custom) => FieldSet::of_fields(&[&["metadata"], &["spec"]]),
        ("status", Family::Deployment) => FieldSet::of_fields(&[&["spec"], &["metadata", "labels"]]),
        ("status", Family::Pod) => {
            FieldSet::of_fields(&[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]])
        }
        ("status", Family::Definition) => FieldSet::of_fields(&[&["spec"], &["metadata"]]),
        ("status", _) => FieldSet::of_fields(&[&["spec"]]),
        (_, Family::Namespace | Family::Node) => FieldSet::of_fields(&[&["status"]]),
        _ if resource.status => FieldSet::of_fields(&[&["status"]]),
        _ => FieldSet::default(),
    }
}

/// Validates an object of a built-in kind. `old` is the object before an update.
pub(crate) fn check(resource: &Resource, new: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = names::check(resource, new);
    causes.extend(owners(new));
    match resource.family {
        Family::Deployment | Family::ReplicaSet => causes.extend(deployment::check(new, old)),
        Family::StatefulSet => causes.extend(stateful_set::check(new, old)),
        Family::Job => causes.extend(job::check(new, old)),
        Family::Budget => causes.extend(budget::check(new)),
        Family::Pod => causes.extend(pod::check(&new["spec"], "spec")),
        Family::Service => causes.extend(service::check(new, old)),
        Family::Claim => causes.extend(claim::check(new, old)),
        Family::Definition => causes.extend(definition::check(new)),
        Family::ConfigMap | Family::Secret => causes.extend(data::check(resource.family, new, old)),
        _ => {}
    }
    causes
}

fn owners(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let references = object["metadata"]["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
    for (at, owner) in references.iter().enumerate() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner[field].as_str().is_none_or(str::is_empty) {
                let path = format!("metadata.ownerReferences[{at}].{field}");
                causes.push(Cause::invalid(&path, "\"\"", "must not be empty"));
            }
        }
    }
    let controllers: Vec<&Value> = references.iter().filter(|owner| owner["controller"] == true).collect();
    if let [first, second, ..] = controllers.as_slice() {
        let name = |owner: &Value| {
            format!("{}/{}", owner["kind"].as_str().unwrap_or(""), owner["name"].as_str().unwrap_or(""))
        };
        causes.push(Cause::invalid(
            "metadata.ownerReferences",
            &in_go_order(references),
            &format!(
                "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
                name(first),
                name(second)
            ),
        ));
    }
    causes
}

/// Formats owner references as Go does.
fn in_go_order(references: &[Value]) -> String {
    let one = |owner: &Value| {
        let fields = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
        let parts = fields.iter().filter(|field| !owner[**field].is_null());
        let parts: Vec<String> = parts.map(|field| format!("\"{field}\":{}", owner[*field])).collect();
        format!("{{{}}}", parts.join(","))
    };
    format!("[{}]", references.iter().map(one).collect::<Vec<_>>().join(","))
}
