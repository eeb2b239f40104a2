//! Handles DELETE requests, with preconditions, finalizers, propagation and grace periods.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::{Answer, decode, read, request::Request, write};
use crate::{
    catalogue::{Family, Resource},
    clock, kinds,
    state::State,
    status::{ApiError, Cause, Subject},
    storage::{Key, key_of, meta},
};

/// The options of a deletion.
#[derive(Debug, Clone, Default)]
pub(crate) struct Deletion {
    pub(crate) propagation: Option<String>,
    pub(crate) grace: Option<i64>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) dry_run: bool,
}

/// Namespaces that every cluster has and that no user can delete.
const LASTING: [&str; 3] = ["default", "kube-public", "kube-system"];

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

impl Deletion {
    fn read(request: &Request<'_>) -> Result<Self, ApiError> {
        let options = &request.call.options;
        let body = if request.call.body.is_empty() { Value::Null } else { decode::parse(request)? };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let mut propagation = text(&body["propagationPolicy"]).or_else(|| options.propagation.clone());
        if let Some(orphan) = body["orphanDependents"].as_bool() {
            propagation = Some(if orphan { "Orphan" } else { "Background" }.into());
        }
        if let Some(policy) = &propagation
            && !matches!(policy.as_str(), "Background" | "Foreground" | "Orphan")
        {
            let subject = Subject { group: "meta.k8s.io".into(), kind: "DeleteOptions".into(), name: String::new() };
            let known = ["Foreground", "Background", "Orphan", "nil"].map(|policy| json!(policy));
            return Err(ApiError::invalid(
                &subject,
                &[Cause::unsupported("propagationPolicy", &json!(policy), &known)],
            ));
        }
        Ok(Self {
            propagation,
            grace: body["gracePeriodSeconds"].as_i64().or(options.grace_period),
            uid: text(&body["preconditions"]["uid"]),
            resource_version: text(&body["preconditions"]["resourceVersion"]),
            dry_run: options.dry_run || body["dryRun"].as_array().is_some_and(|dry_run| !dry_run.is_empty()),
        })
    }
}

/// Deletes one object.
pub(super) fn delete_one(state: &mut State, request: &Request<'_>) -> Result<Answer, ApiError> {
    let deletion = Deletion::read(request)?;
    let old = request.stored(state)?;
    let left = delete(state, request.resource, &request.key(), &deletion, request.context.now)?;
    if let Some(object) = left {
        return Ok(request.answer(http::StatusCode::OK, &object, Vec::new()));
    }
    let mut details = json!({"name": request.name, "kind": request.resource.plural, "uid": meta(&old, "uid")});
    if !request.resource.group.is_empty() {
        details["group"] = json!(request.resource.group);
    }
    Ok(Answer::value(
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}),
    ))
}

/// Deletes all objects that match the selectors.
pub(super) fn delete_many(state: &mut State, request: &Request<'_>) -> Result<Answer, ApiError> {
    let deletion = Deletion::read(request)?;
    let chosen = read::choose(state, request)?;
    for (key, _) in &chosen {
        let each = Deletion { uid: None, resource_version: None, ..deletion.clone() };
        delete(state, request.resource, key, &each, request.context.now)?;
    }
    let items = chosen.into_iter().map(|(_, object)| object).collect();
    let revision = state.store.revision();
    Ok(Answer::List { items, revision, next: None, remaining: None, resource: Arc::clone(request.resource) })
}

/// Deletes an object. If finalizers or a grace period keep the object, marks the object as deleted and returns the
/// object.
pub(crate) fn delete(
    state: &mut State,
    resource: &Resource,
    key: &Key,
    deletion: &Deletion,
    now: &str,
) -> Result<Option<Arc<Value>>, ApiError> {
    let subject = resource.subject(&key.name);
    if resource.family == Family::Namespace && LASTING.contains(&key.name.as_str()) {
        return Err(ApiError::forbidden(&subject, "this namespace may not be deleted"));
    }
    let Some(old) = state.store.get(&resource.storage(), key).cloned() else {
        return Err(ApiError::not_found(&subject));
    };
    for (wanted, field, what) in
        [(&deletion.uid, "uid", "UID"), (&deletion.resource_version, "resourceVersion", "ResourceVersion")]
    {
        if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != meta(&old, field)) {
            let fate = if field == "uid" { "deleted and then recreated" } else { "modified" };
            let why = format!(
                "the {what} in the precondition ({wanted}) does not match the {what} in record ({}). The object might have been {fate}",
                meta(&old, field)
            );
            return Err(ApiError::conflict(&resource.kind_subject(&key.name), &why));
        }
    }
    let mut new = (*old).clone();
    let marked = !meta(&old, "deletionTimestamp").is_empty();
    set_propagation(&mut new, deletion.propagation.as_deref());
    if resource.family == Family::Definition && !marked {
        kinds::hold_definition(&mut new, now);
    }
    let held = new["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
    let grace = grace_period(resource, &old, deletion);
    if !held && grace == 0 && resource.family != Family::Namespace {
        return Ok(if deletion.dry_run {
            None
        } else {
            state.store.remove(&resource.storage(), key);
            None
        });
    }
    if !marked || grace < old["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default() {
        mark(resource, &mut new, grace, now, marked);
    }
    if new == *old {
        return Ok(Some(old));
    }
    if deletion.dry_run {
        return Ok(Some(Arc::new(new)));
    }
    Ok(Some(state.store.put(&resource.storage(), &key_of(&old), new)))
}

fn mark(resource: &Resource, object: &mut Value, grace: i64, now: &str, marked: bool) {
    let end = clock::parse(now).and_then(|now| now.checked_add(Duration::from_secs(grace.unsigned_abs())).ok());
    let metadata = &mut object["metadata"];
    metadata["deletionTimestamp"] = json!(end.map_or_else(|| now.to_owned(), clock::text));
    if resource.family == Family::Namespace {
        object["status"]["phase"] = json!("Terminating");
        return;
    }
    metadata["deletionGracePeriodSeconds"] = json!(grace);
    if let (Some(generation), false) = (metadata["generation"].as_i64(), marked) {
        metadata["generation"] = json!(generation + 1);
    }
}

/// Returns the grace period of a running pod, and 0 for all other objects.
fn grace_period(resource: &Resource, object: &Value, deletion: &Deletion) -> i64 {
    let scheduled = object["spec"]["nodeName"].is_string();
    let over = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if resource.family != Family::Pod || !scheduled || over {
        return 0;
    }
    deletion.grace.unwrap_or_else(|| object["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30)).max(0)
}

fn set_propagation(object: &mut Value, policy: Option<&str>) {
    let Some(policy) = policy else { return };
    let mut finalizers = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    finalizers.retain(|finalizer| finalizer != FOREGROUND && finalizer != ORPHAN);
    match policy {
        "Foreground" => finalizers.push(json!(FOREGROUND)),
        "Orphan" => finalizers.push(json!(ORPHAN)),
        _ => {}
    }
    write::put(&mut object["metadata"], "finalizers", (!finalizers.is_empty()).then(|| json!(finalizers)));
}
