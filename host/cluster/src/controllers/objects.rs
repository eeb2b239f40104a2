//! The types that controllers reconcile, and lookups by owner.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    catalogue::Resource,
    state::State,
    storage::{GroupResource, controller},
};

pub(super) fn pods() -> GroupResource {
    GroupResource::new("", "pods")
}

pub(super) fn replica_set_objects() -> GroupResource {
    GroupResource::new("apps", "replicasets")
}

pub(super) fn deployment_objects() -> GroupResource {
    GroupResource::new("apps", "deployments")
}

pub(super) fn stateful_set_objects() -> GroupResource {
    GroupResource::new("apps", "statefulsets")
}

pub(super) fn job_objects() -> GroupResource {
    GroupResource::new("batch", "jobs")
}

pub(super) fn budget_objects() -> GroupResource {
    GroupResource::new("policy", "poddisruptionbudgets")
}

pub(super) fn custom_definitions() -> GroupResource {
    GroupResource::new("apiextensions.k8s.io", "customresourcedefinitions")
}

/// Returns the name of an object's controller, or `None` without a controller.
pub(super) fn controller_of(object: &Value) -> Option<String> {
    controller(object)?["name"].as_str().map(str::to_owned)
}

/// Returns whether the owner with this UID controls an object.
pub(super) fn is_controlled_by(object: &Value, uid: &str) -> bool {
    controller(object).is_some_and(|owner| owner["uid"] == *uid)
}

/// Returns the objects that an owner controls, of one type and in one namespace.
pub(super) fn controlled(state: &State, resource: &GroupResource, namespace: &str, uid: &str) -> Vec<Arc<Value>> {
    let objects = state.store.dependents(uid).into_iter();
    objects
        .filter(|place| place.resource == *resource && place.key.namespace == namespace)
        .filter_map(|place| state.store.get(&place.resource, &place.key).cloned())
        .filter(|object| is_controlled_by(object, uid))
        .collect()
}

/// Returns a served version of the type with this group and plural, or `None` if the cluster does not serve the type.
pub(super) fn served(state: &State, resource: &GroupResource) -> Option<Arc<Resource>> {
    state.catalogue.of_storage(resource).cloned()
}
