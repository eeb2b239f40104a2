//! Namespaces: creates their default content, and terminates them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Moment, served};
use crate::{
    api::{self, Deletion},
    catalogue::Resource,
    state::State,
    storage::{GroupResource, Key, meta},
};

fn namespaces() -> GroupResource {
    GroupResource::new("", "namespaces")
}

pub(super) fn sync(state: &mut State, name: &str, moment: &Moment<'_>) {
    let Some(namespace) = state.store.get(&namespaces(), &Key::new("", name)).cloned() else { return };
    let now = moment.text();
    if meta(&namespace, "deletionTimestamp").is_empty() {
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        ensure(state, "serviceaccounts", name, account, &now);
        let authority = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt"},
            "data": {"ca.crt": ""}});
        ensure(state, "configmaps", name, authority, &now);
        return;
    }
    let contents: Vec<Arc<Resource>> = state
        .store
        .resources()
        .iter()
        .filter_map(|resource| served(state, resource))
        .filter(|resource| resource.namespaced)
        .collect();
    let mut left = Vec::new();
    for resource in contents {
        let keys: Vec<Key> = state.store.list(&resource.storage(), name).map(|(key, _)| key.clone()).collect();
        for key in keys {
            let grace = Deletion { grace: Some(0), ..Deletion::default() };
            if let Ok(Some(object)) = api::delete(state, &resource, &key, &grace, &now) {
                left.push((resource.subject("").kind, resource.group.clone(), object));
            }
        }
    }
    let own = namespace["metadata"]["finalizers"].as_array().is_some_and(|own| !own.is_empty());
    if left.is_empty() && !own {
        state.store.remove(&namespaces(), &Key::new("", name));
    } else if let Some(resource) = served(state, &namespaces()) {
        api::controller_update(state, &resource, "status", &namespace, &now, |object| {
            object["status"]["conditions"] = conditions(object, &left, &now);
        });
    }
}

/// Returns the conditions that explain why the termination is blocked, with the messages of a real controller.
fn conditions(object: &Value, left: &[(String, String, Arc<Value>)], now: &str) -> Value {
    let mut counts: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    let mut finalizers: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    for (plural, group, object) in left {
        let dot = if group.is_empty() { "" } else { "." };
        *counts.entry(format!("{plural}{dot}{group}")).or_default() += 1;
        for finalizer in object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            *finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }
    let list = |counts: &std::collections::BTreeMap<String, usize>, what: &str| {
        let parts: Vec<String> =
            counts.iter().map(|(name, count)| format!("{name} {what} {count} resource instances")).collect();
        parts.join(", ")
    };
    let old = |kind: &str, status: &str| {
        let known = object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == *kind)?;
        (known["status"] == *status).then(|| known["lastTransitionTime"].clone())
    };
    let condition = |kind: &str, holds: bool, reasons: (&str, &str), messages: (String, &str)| {
        let status = if holds { "True" } else { "False" };
        let (reason, message) = if holds { (reasons.0, messages.0) } else { (reasons.1, messages.1.to_owned()) };
        json!({"type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": old(kind, status).unwrap_or_else(|| json!(now))})
    };
    json!([
        condition(
            "NamespaceContentRemaining",
            !counts.is_empty(),
            ("SomeResourcesRemain", "ContentRemoved"),
            (format!("Some resources are remaining: {}", list(&counts, "has")), "All content successfully removed"),
        ),
        condition(
            "NamespaceFinalizersRemaining",
            !finalizers.is_empty(),
            ("SomeFinalizersRemain", "ContentHasNoFinalizers"),
            (
                format!("Some content in the namespace has finalizers remaining: {}", list(&finalizers, "in")),
                "All content-preserving finalizers finished",
            ),
        ),
    ])
}

fn ensure(state: &mut State, plural: &str, namespace: &str, mut object: Value, now: &str) {
    let resource = GroupResource::new("", plural);
    let key = Key::new(namespace, meta(&object, "name"));
    if state.store.get(&resource, &key).is_some() {
        return;
    }
    object["metadata"]["namespace"] = json!(namespace);
    object["metadata"]["uid"] = json!(state.uid());
    object["metadata"]["creationTimestamp"] = json!(now);
    state.store.put(&resource, &key, object);
}
