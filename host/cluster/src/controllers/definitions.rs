//! `CustomResourceDefinition`s: serves the types of each `CustomResourceDefinition` while it exists. When a
//! `CustomResourceDefinition` is deleted, first removes all objects of its types.

use serde_json::{Value, json};

use super::{Moment, custom_definitions, served};
use crate::{
    api::{self, Deletion},
    state::State,
    storage::{GroupResource, Key, meta},
};

const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

pub(super) fn sync(state: &mut State, key: &Key, moment: &Moment<'_>) {
    let Some(definition) = state.store.get(&custom_definitions(), key).cloned() else {
        return remove(state, key);
    };
    let Some(resource) = served(state, &custom_definitions()) else { return };
    let now = moment.text();
    let revision = state.store.revision();
    state.catalogue.install(&definition, revision);
    if meta(&definition, "deletionTimestamp").is_empty() {
        api::controller_update(state, &resource, "status", &definition, &now, |object| establish(object, &now));
        return;
    }
    let objects = storage_of(&definition);
    let keys: Vec<Key> = state.store.list(&objects, "").map(|(key, _)| key.clone()).collect();
    if let Some(custom) = served(state, &objects) {
        for key in &keys {
            // An object with finalizers remains. When this object is gone, the controller runs again.
            let _left = api::delete(state, &custom, key, &Deletion::default(), &now);
        }
    }
    if state.store.list(&objects, "").next().is_none() {
        let Some(definition) = state.store.get(&custom_definitions(), key).cloned() else { return };
        api::controller_update(state, &resource, "", &definition, &now, |object| {
            if let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut() {
                finalizers.retain(|finalizer| finalizer != FINALIZER);
            }
        });
    }
}

fn remove(state: &mut State, key: &Key) {
    let Some((plural, group)) = key.name.split_once('.') else { return };
    state.catalogue.uninstall(&json!({"spec": {"group": group, "names": {"plural": plural}}}));
}

fn storage_of(definition: &Value) -> GroupResource {
    let spec = &definition["spec"];
    GroupResource::new(spec["group"].as_str().unwrap_or_default(), spec["names"]["plural"].as_str().unwrap_or_default())
}

/// Accepts the names in a `CustomResourceDefinition`, and reports in its status that the cluster serves the type.
fn establish(object: &mut Value, now: &str) {
    let condition = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now});
    let stored: Vec<Value> = object["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|version| version["storage"] == true)
        .map(|version| version["name"].clone())
        .collect();
    let mut versions = object["status"]["storedVersions"].as_array().cloned().unwrap_or_default();
    versions.extend(
        stored.into_iter().filter(|version| {
            !object["status"]["storedVersions"].as_array().is_some_and(|known| known.contains(version))
        }),
    );
    let names = object["spec"]["names"].clone();
    if object["status"]["conditions"].as_array().is_none_or(Vec::is_empty) {
        object["status"]["conditions"] = json!([
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ]);
    }
    object["status"]["acceptedNames"] = names;
    object["status"]["storedVersions"] = json!(versions);
}
