//! Creates objects, by POST or by a server-side apply.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::{
    Answer, decode,
    request::Request,
    review,
    write::{self, controller, stored_form},
};
use crate::{
    apply::Managed,
    catalogue::{Family, Resource},
    kinds, schema,
    state::State,
    status::{ApiError, Cause},
    storage::{GroupResource, Key, key_of, meta},
};

/// Creates an object.
pub(super) fn create(state: &mut State, request: &Request<'_>) -> Result<Answer, ApiError> {
    let resource = request.resource;
    if resource.family == Family::Review {
        return review::answer(state, request);
    }
    let mut object = decode::object(request)?;
    if !meta(&object, "resourceVersion").is_empty() {
        return Err(ApiError::bad_request("resourceVersion should not be set on objects to be created"));
    }
    let warnings = decode::settle(request, &mut object)?;
    let ignored = kinds::reset_fields(resource, "");
    let mut managed = Managed::default();
    if !object["metadata"]["managedFields"].is_null() {
        managed = Managed::of(&object);
    }
    managed.update(&kinds::blank(resource), &object, request.manager(false), &request.rules(&ignored));
    object = stored_form(resource.family, object);
    managed.write(&mut object);
    let stored = insert(state, request, object)?;
    Ok(request.answer(StatusCode::CREATED, &stored, warnings))
}

/// Stores a new object with its managed fields.
pub(super) fn insert(state: &mut State, request: &Request<'_>, mut object: Value) -> Result<Arc<Value>, ApiError> {
    let resource = request.resource;
    name(state, request, &mut object)?;
    check_namespace(state, request, meta(&object, "name"))?;
    check_definition(state, resource)?;
    let metadata = &mut object["metadata"];
    metadata["uid"] = json!(state.uid());
    metadata["creationTimestamp"] = json!(request.context.now);
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion", "selfLink"] {
        write::put(metadata, field, None);
    }
    let managed = metadata["managedFields"].clone();
    kinds::prepare_create(resource, &mut object);
    if resource.family == Family::Service {
        state.addresses.allocate(&mut object, None);
    }
    if !managed.is_null() {
        object["metadata"]["managedFields"] = managed;
    }
    write::validate(resource, &object, None)?;
    let key = key_of(&object);
    if state.store.get(&resource.storage(), &key).is_some() {
        return Err(ApiError::already_exists(&resource.subject(&key.name)));
    }
    if let Some(custom) = &resource.custom {
        object["apiVersion"] = json!(format!("{}/{}", resource.group, custom.storage_version));
    }
    if request.call.options.dry_run {
        return Ok(Arc::new(object));
    }
    if resource.family == Family::Custom {
        // A real server applies defaults to each object that it reads from storage, so the new object gets the default
        // status. An earlier step has removed the status that the client sent.
        schema::defaults::fill(&mut object, &resource.node);
    }
    Ok(state.store.put(&resource.storage(), &key, object))
}

fn name(state: &mut State, request: &Request<'_>, object: &mut Value) -> Result<(), ApiError> {
    if !meta(object, "name").is_empty() {
        return Ok(());
    }
    let prefix = meta(object, "generateName").to_owned();
    if prefix.is_empty() {
        let cause = Cause::required("metadata.name", "name or generateName is required");
        return Err(ApiError::invalid(&request.resource.kind_subject(""), &[cause]));
    }
    let prefix: String = prefix.chars().take(58).collect();
    let free = (0..8).find_map(|_| {
        let name = format!("{prefix}{}", state.suffix());
        let taken = state.store.get(&request.resource.storage(), &Key::new(request.namespace, &name)).is_some();
        (!taken).then_some(name)
    });
    object["metadata"]["name"] = json!(free.unwrap_or(prefix));
    Ok(())
}

/// Refuses new objects of a type whose CustomResourceDefinition is being deleted.
fn check_definition(state: &State, resource: &Resource) -> Result<(), ApiError> {
    let definitions = GroupResource::new("apiextensions.k8s.io", "customresourcedefinitions");
    let key = Key::new("", &format!("{}.{}", resource.plural, resource.group));
    let going = |found: &Arc<Value>| !meta(found, "deletionTimestamp").is_empty();
    if resource.custom.is_none() || !state.store.get(&definitions, &key).is_some_and(going) {
        return Ok(());
    }
    let message = "create not allowed while custom resource definition is terminating";
    Err(ApiError::plain(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message))
}

/// Refuses new objects in a namespace that does not exist or is terminating.
fn check_namespace(state: &State, request: &Request<'_>, name: &str) -> Result<(), ApiError> {
    if !request.resource.namespaced {
        return Ok(());
    }
    let namespaces = GroupResource::new("", "namespaces");
    let namespace = request.namespace;
    let Some(found) = state.store.get(&namespaces, &Key::new("", namespace)) else {
        let subject =
            crate::status::Subject { kind: "namespaces".into(), name: namespace.into(), ..Default::default() };
        return Err(ApiError::not_found(&subject));
    };
    if meta(found, "deletionTimestamp").is_empty() {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut error = ApiError::forbidden(&request.resource.subject(name), &why);
    if let Some(details) = &mut error.details {
        details["causes"] = json!([{"reason": "NamespaceTerminating",
            "message": format!("namespace {namespace} is being terminated"), "field": "metadata.namespace"}]);
    }
    Err(error)
}

/// Completes an object that a controller creates: sets name, identity, status and managers.
pub(crate) fn stamp(state: &mut State, resource: &Resource, object: &mut Value, name: &str, now: &str) {
    let ignored = kinds::reset_fields(resource, "");
    let rules = crate::apply::managers::OwnershipRules { node: &resource.node, ignored: &ignored, now };
    let mut managed = Managed::default();
    managed.update(&kinds::blank(resource), object, controller(resource, ""), &rules);
    object["metadata"]["name"] = json!(name);
    object["metadata"]["uid"] = json!(state.uid());
    object["metadata"]["creationTimestamp"] = json!(now);
    kinds::prepare_create(resource, object);
    managed.write(object);
}
