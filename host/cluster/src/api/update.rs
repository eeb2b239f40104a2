//! PUT, and updates by controllers.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::{
    Answer, decode, present,
    request::Request,
    write::{self, controller, stored_form},
};
use crate::{
    apply::Managed,
    catalogue::{Family, Resource},
    kinds,
    state::State,
    status::{ApiError, Cause},
    storage::meta,
};

/// Replaces an object.
pub(super) fn update(state: &mut State, request: &Request<'_>) -> Result<Answer, ApiError> {
    let old = request.stored(state)?;
    let mut new = decode::object(request)?;
    let resource = request.resource;
    let conditional = matches!(resource.family, Family::Custom | Family::Lease | Family::Definition);
    if conditional && meta(&new, "resourceVersion").is_empty() {
        let cause = Cause::invalid("metadata.resourceVersion", "0", "must be specified for an update");
        return Err(ApiError::invalid(&resource.subject(request.name), &[cause]));
    }
    let warnings = decode::settle(request, &mut new)?;
    let stored = replace(state, request, &old, new)?;
    Ok(request.answer(StatusCode::OK, &stored, warnings))
}

/// Replaces `old` by `new`, for PUT and for every patch except apply. The caller must have converted `new` with
/// `decode::settle`.
pub(super) fn replace(
    state: &mut State,
    request: &Request<'_>,
    old: &Arc<Value>,
    new: Value,
) -> Result<Arc<Value>, ApiError> {
    let resource = request.resource;
    check_preconditions(resource, old, &new)?;
    let mut managed = managers_of(old, &new, request.subresource);
    if !managed.is_empty() {
        let ignored = kinds::reset_fields(resource, request.subresource);
        let shown = present::present(resource, old);
        managed.update(&shown, &new, request.manager(false), &request.rules(&ignored));
    }
    let mut new = stored_form(resource.family, new);
    if let Some(custom) = &resource.custom {
        new["apiVersion"] = json!(format!("{}/{}", resource.group, custom.storage_version));
    }
    managed.write(&mut new);
    write::keep_reserved(resource, request.subresource, old, &mut new);
    write::commit(state, resource, request.subresource, old, new, request.call.options.dry_run)
}

/// Returns the managed fields before an update. If the request contains managed fields, they replace the stored managed
/// fields.
fn managers_of(old: &Value, new: &Value, subresource: &str) -> Managed {
    let stored = Managed::of(old);
    if !subresource.is_empty() {
        return stored;
    }
    let given = new["metadata"]["managedFields"].as_array();
    if given.is_some_and(|given| given.len() == 1 && given[0].as_object().is_some_and(serde_json::Map::is_empty)) {
        return Managed::default();
    }
    let given = Managed::of(new);
    if given.is_empty() { stored } else { given }
}

/// Refuses an update if its UID or resource version differs from the old object's.
pub(super) fn check_preconditions(resource: &Resource, old: &Value, new: &Value) -> Result<(), ApiError> {
    let subject = resource.subject(meta(old, "name"));
    let (wanted, found) = (meta(new, "uid"), meta(old, "uid"));
    if !wanted.is_empty() && wanted != found {
        let why = format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}");
        return Err(ApiError::conflict(&subject, &why));
    }
    let wanted = meta(new, "resourceVersion");
    if !wanted.is_empty() && wanted != meta(old, "resourceVersion") {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        return Err(ApiError::conflict(&subject, why));
    }
    Ok(())
}

/// Updates an object for a controller. `change` edits a copy. Handles field managers, the generation and unchanged
/// objects in the same way as for an update by a client. Most calls change nothing and return early.
pub(crate) fn controller_update(
    state: &mut State,
    resource: &Resource,
    subresource: &str,
    old: &Arc<Value>,
    now: &str,
    change: impl FnOnce(&mut Value),
) -> Option<Arc<Value>> {
    let mut new = (**old).clone();
    change(&mut new);
    if new == **old {
        return Some(Arc::clone(old));
    }
    let mut managed = Managed::of(old);
    let ignored = kinds::reset_fields(resource, subresource);
    let rules = crate::apply::managers::OwnershipRules { node: &resource.node, ignored: &ignored, now };
    managed.update(old, &new, controller(resource, subresource), &rules);
    managed.write(&mut new);
    write::commit(state, resource, subresource, old, new, false).ok()
}
