//! Creates and deletes the pods of an owner, from the owner's template.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Moment,
    events::{self, EventText},
    pods, served,
};
use crate::{
    api::{self, Deletion},
    kinds,
    state::State,
    storage::{GroupResource, Key, meta},
};

/// The maximum number of pods of one owner.
const MAX_PODS: i64 = 1000;

/// If the service account is missing, returns the reason why the controller cannot create pods.
pub(super) fn missing_account(state: &State, owner: &Value) -> Option<String> {
    let (namespace, name) = (meta(owner, "namespace"), meta(owner, "name"));
    let account = owner["spec"]["template"]["spec"]["serviceAccountName"].as_str().unwrap_or("default");
    let found = state.store.get(&GroupResource::new("", "serviceaccounts"), &Key::new(namespace, account)).is_some();
    (!found).then(|| {
        format!(
            "pods \"{name}-\" is forbidden: error looking up service account {namespace}/{account}: serviceaccount \"{account}\" not found"
        )
    })
}

/// Returns how many of the wanted pods an owner gets: at most `MAX_PODS`. Records an Event if the owner gets fewer pods
/// than it wants. The limit is necessary, because every step locks the cluster, and millions of pods would take hours.
pub(super) fn bounded(state: &mut State, owner: &Value, wanted: i64, moment: &Moment<'_>) -> i64 {
    if wanted > MAX_PODS {
        let kind = owner["kind"].as_str().unwrap_or_default();
        let message = format!(
            "{kind} {} gets {MAX_PODS} of {wanted} pods: this cluster runs at most {MAX_PODS} pods for one owner",
            meta(owner, "name")
        );
        let by = format!("{}-controller", kind.to_ascii_lowercase());
        let told = EventText { kind: "Warning", reason: "TooManyPods", message, by: &by };
        let mark = meta(owner, "uid").replace('-', "");
        let name = format!("{}.{}-pods", meta(owner, "name"), mark.get(..16).unwrap_or(&mark));
        events::record(state, owner, &name, &told, moment);
    }
    wanted.min(MAX_PODS)
}

/// Creates a pod from an owner's template, with this name or with a generated name. `more` adds the fields that only
/// this pod has.
pub(super) fn create(
    state: &mut State,
    owner: &Value,
    name: Option<String>,
    moment: &Moment<'_>,
    more: impl FnOnce(&mut Value),
) -> Option<Arc<Value>> {
    let resource = served(state, &pods())?;
    let namespace = meta(owner, "namespace");
    let prefix = format!("{}-", meta(owner, "name"));
    let name = name.unwrap_or_else(|| format!("{}{}", prefix.chars().take(58).collect::<String>(), state.suffix()));
    let template = &owner["spec"]["template"];
    let mut metadata = json!({"generateName": prefix, "namespace": namespace, "ownerReferences": [{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta(owner, "name"),
        "uid": meta(owner, "uid"), "controller": true, "blockOwnerDeletion": true}]});
    for field in ["labels", "annotations", "finalizers"] {
        if !template["metadata"][field].is_null() {
            metadata[field] = template["metadata"][field].clone();
        }
    }
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]});
    more(&mut pod);
    kinds::normalise(&resource, &mut pod);
    api::stamp(state, &resource, &mut pod, &name, &moment.text());
    Some(state.store.put(&pods(), &Key::new(namespace, &name), pod))
}

/// Deletes a pod.
pub(super) fn delete(state: &mut State, pod: &Value, moment: &Moment<'_>) {
    let Some(resource) = served(state, &pods()) else { return };
    let key = Key::new(meta(pod, "namespace"), meta(pod, "name"));
    // Ignore the error, which means that the pod no longer exists.
    let _left = api::delete(state, &resource, &key, &Deletion::default(), &moment.text());
}
