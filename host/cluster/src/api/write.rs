//! What all writes share: the request at hand, managers, validation and the last step into the store.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{Answer, Call, Context, present};
use crate::{
    apply::{self, FieldSet, Managed, Manager},
    catalogue::{Family, Resource},
    faults::{Attempt, Verb},
    kinds, schema,
    state::State,
    status::{ApiError, Cause},
    storage::{Key, meta},
};

/// A write (or read) of one resource.
pub(super) struct Request<'a> {
    pub(super) resource: &'a Arc<Resource>,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) subresource: &'a str,
    pub(super) call: &'a Call,
    pub(super) context: &'a Context<'a>,
}

impl Request<'_> {
    pub(super) fn key(&self) -> Key {
        Key::new(self.namespace, self.name)
    }

    /// The object that is asked for.
    pub(super) fn stored(&self, state: &State) -> Result<Arc<Value>, ApiError> {
        let found = state.store.get(&self.resource.storage(), &self.key());
        found.cloned().ok_or_else(|| ApiError::not_found(&self.resource.subject(self.name)))
    }

    /// Who writes.
    pub(super) fn manager(&self, applies: bool) -> Manager {
        let program = self.call.program.split('/').next().unwrap_or_default();
        let name =
            [self.call.options.field_manager.as_str(), program, "unknown"].into_iter().find(|name| !name.is_empty());
        Manager {
            name: name.unwrap_or_default().to_owned(),
            applies,
            api_version: self.resource.api_version(),
            subresource: self.subresource.to_owned(),
        }
    }

    /// The request as access rules see it, with another verb.
    pub(super) fn attempt(&self, verb: Verb) -> Attempt {
        Attempt {
            user: self.call.user.clone(),
            program: self.call.program.clone(),
            verb,
            group: self.resource.group.clone(),
            resource: self.resource.plural.clone(),
            subresource: self.subresource.to_owned(),
            namespace: self.namespace.to_owned(),
            name: self.name.to_owned(),
            content_type: self.call.content_type.clone(),
            dry_run: self.call.options.dry_run,
        }
    }

    /// An answer with one object, at the version that was asked for.
    pub(super) fn answer(&self, code: http::StatusCode, object: &Arc<Value>, warnings: Vec<String>) -> Answer {
        let object = present::present(self.resource, object);
        Answer::Object { code, object, resource: Arc::clone(self.resource), warnings }
    }

    /// Rules for managed fields at this endpoint.
    pub(super) fn rules<'r>(&'r self, ignored: &'r FieldSet) -> apply::managers::Rules<'r> {
        apply::managers::Rules { node: &self.resource.node, ignored, now: self.context.now }
    }
}

/// What is wrong with an object; the kind's rules, the schema's, and CEL.
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

/// Carries over what no update changes, and what this endpoint does not.
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

/// The last step of an update: generation, validation, and the store.
///
/// An object that is being deleted and lost its last finalizer is removed. What changes nothing is not written.
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

/// Whether nothing but the times of managers differ.
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
