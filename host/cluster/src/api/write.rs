//! Steps that all writes have in common: managers, validation and the final write to the store.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::{
    apply::{Managed, Manager},
    catalogue::{Family, Resource},
    kinds, schema,
    state::State,
    status::{ApiError, Cause},
    storage::meta,
};

/// Validates an object by the rules of its kind, by its schema and by CEL rules.
pub(super) fn validate(resource: &Resource, new: &Value, old: Option<&Value>) -> Result<(), ApiError> {
    let mut causes = kinds::check(resource, new, old);
    if let Some(custom) = &resource.custom {
        let found = schema::validate::check(new, &resource.node, "");
        let blocked = !found.is_empty();
        causes.extend(found);
        if !blocked {
            causes.extend(custom.rules.check(new, old));
        } else if custom.rules.any() {
            let message = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
            causes.push(Cause::invalid("<nil>", "null", message));
        }
    }
    if causes.is_empty() { Ok(()) } else { Err(ApiError::invalid(&resource.kind_subject(meta(new, "name")), &causes)) }
}

/// Restores fields that no update can change, and fields that this endpoint must not write.
pub(super) fn keep_reserved(resource: &Resource, subresource: &str, old: &Value, new: &mut Value) {
    if subresource == "status" {
        let managed = new["metadata"]["managedFields"].clone();
        let status = new.get("status").cloned();
        if resource.family == Family::Custom || resource.family == Family::Definition {
            *new = old.clone();
        } else {
            put(new, "spec", old.get("spec").cloned());
            if resource.family == Family::Deployment {
                put(&mut new["metadata"], "labels", old["metadata"].get("labels").cloned());
            }
        }
        put(new, "status", status);
        put(&mut new["metadata"], "managedFields", Some(managed).filter(|managed| !managed.is_null()));
    } else if resource.status || resource.family == Family::Namespace {
        put(new, "status", old.get("status").cloned());
    }
    if resource.family == Family::Namespace && subresource != "finalize" {
        put(new, "spec", old.get("spec").cloned());
    }
    for field in [
        "name",
        "namespace",
        "generateName",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "resourceVersion",
    ] {
        put(&mut new["metadata"], field, old["metadata"].get(field).cloned());
    }
}

pub(super) fn put(value: &mut Value, field: &str, content: Option<Value>) {
    if let Some(object) = value.as_object_mut() {
        match content {
            Some(content) => drop(object.insert(field.to_owned(), content)),
            None => drop(object.remove(field)),
        }
    }
}

/// Ends an update: sets the generation, validates the object and stores it.
///
/// If the object is being deleted and the update removes its last finalizer, removes the object instead. Does not store
/// an update that changes nothing.
pub(super) fn commit(
    state: &mut State,
    resource: &Resource,
    subresource: &str,
    old: &Arc<Value>,
    mut new: Value,
    dry_run: bool,
) -> Result<Arc<Value>, ApiError> {
    if subresource != "status" && kinds::raises_generation(resource, old, &new) {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or_default();
        new["metadata"]["generation"] = json!(generation + 1);
    }
    if resource.family == Family::Service {
        state.addresses.allocate(&mut new, Some(old));
    }
    if !meta(old, "deletionTimestamp").is_empty() {
        check_new_finalizers(resource, old, &new)?;
    }
    if subresource.is_empty() || resource.custom.is_some() {
        validate(resource, &new, Some(old))?;
    }
    if unchanged(old, &new) {
        return Ok(Arc::clone(old));
    }
    if dry_run {
        return Ok(Arc::new(new));
    }
    let key = crate::storage::key_of(old);
    let no_finalizers = new["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
    let grace = old["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default();
    let held = resource.family == Family::Namespace || grace > 0;
    if !meta(old, "deletionTimestamp").is_empty() && no_finalizers && !held {
        state.store.put(&resource.storage(), &key, new);
        let gone = state.store.remove(&resource.storage(), &key);
        return Ok(gone.unwrap_or_else(|| Arc::clone(old)));
    }
    Ok(state.store.put(&resource.storage(), &key, new))
}

/// Returns whether both objects are equal, except for the times in managed fields.
fn unchanged(old: &Value, new: &Value) -> bool {
    let same = |old: &Value, new: &Value, but: &str| {
        let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return old == new };
        let kept = |object: &Map<String, Value>| object.len() - usize::from(object.contains_key(but));
        kept(old) == kept(new) && old.iter().all(|(name, value)| name == but || new.get(name) == Some(value))
    };
    same(old, new, "metadata")
        && same(&old["metadata"], &new["metadata"], "managedFields")
        && Managed::of(old).same_fields(&Managed::of(new))
}

fn check_new_finalizers(resource: &Resource, old: &Value, new: &Value) -> Result<(), ApiError> {
    let list = |object: &Value| object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    let before = list(old);
    let added: Vec<String> = list(new)
        .into_iter()
        .filter(|finalizer| !before.contains(finalizer))
        .map(|finalizer| finalizer.to_string())
        .collect();
    if added.is_empty() {
        return Ok(());
    }
    let message = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        added.join(", ")
    );
    Err(ApiError::invalid(
        &resource.kind_subject(meta(new, "name")),
        &[Cause::forbidden("metadata.finalizers", &message)],
    ))
}

/// Returns the manager of all writes by controllers.
pub(super) fn controller(resource: &Resource, subresource: &str) -> Manager {
    Manager {
        name: "kube-controller-manager".into(),
        applies: false,
        api_version: resource.api_version(),
        subresource: subresource.to_owned(),
    }
}

/// Converts an object to its stored form.
pub(super) fn stored_form(family: Family, object: Value) -> Value {
    if family == Family::NewEvent { kinds::event_to_stored(&object) } else { object }
}
