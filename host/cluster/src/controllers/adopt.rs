//! Adopts objects that have no controller and that a selector matches: the pods of an orphaned `ReplicaSet`, and the
//! `ReplicaSet`s of an orphaned Deployment.

use serde_json::{Value, json};

use super::{Moment, served};
use crate::{
    api,
    state::State,
    storage::{GroupResource, Key, LabelSelector, meta},
};

/// Makes `owner` the controller of all objects that its selector matches and that have no controller.
pub(super) fn orphans(state: &mut State, resource: &GroupResource, owner: &Value, kind: &str, moment: &Moment<'_>) {
    let selector = LabelSelector::of_object(&owner["spec"]["selector"]);
    let namespace = meta(owner, "namespace").to_owned();
    let lonely = |object: &Value| {
        meta(object, "deletionTimestamp").is_empty() && !selector.is_empty() && selector.matches(object)
    };
    let found = state.store.uncontrolled(resource, &namespace).filter(|(_, object)| lonely(object));
    let keys: Vec<Key> = found.map(|(key, _)| key.clone()).collect();
    let Some(served) = served(state, resource) else { return };
    for key in keys {
        let Some(object) = state.store.get(resource, &key).cloned() else { continue };
        api::controller_update(state, &served, "", &object, &moment.text(), |object| {
            let reference = json!({"apiVersion": "apps/v1", "kind": kind, "name": meta(owner, "name"),
                "uid": meta(owner, "uid"), "controller": true, "blockOwnerDeletion": true});
            match object["metadata"]["ownerReferences"].as_array_mut() {
                Some(owners) => owners.push(reference),
                None => object["metadata"]["ownerReferences"] = json!([reference]),
            }
        });
    }
}
