//! Handles PATCH requests in all four patch formats.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::{Answer, bounds, create, decode, request::Request, update, write};
use crate::{
    apply::{Managed, managers::Refusal, strategic},
    catalogue::Family,
    faults::Verb,
    kinds,
    state::State,
    status::{ApiError, Cause, Subject},
    storage::meta,
};

/// Patches an object. A server-side apply can also create the object.
pub(super) fn patch(state: &mut State, request: &Request<'_>) -> Result<Answer, ApiError> {
    let form = request.call.content_type.split(';').next().unwrap_or_default().trim().to_owned();
    if form == "application/apply-patch+yaml" {
        return apply(state, request);
    }
    let old = request.stored(state)?;
    let current = super::present::present(request.resource, &old);
    let body = decode::parse(request)?;
    let mut new = match form.as_str() {
        "application/json-patch+json" => bounds::json_patched(&current, &body)?,
        "application/merge-patch+json" => {
            let mut new = (*current).clone();
            json_patch::merge(&mut new, &body);
            new
        }
        "application/strategic-merge-patch+json" if request.resource.family != Family::Custom => {
            strategic::patch(&current, &body, &request.resource.node)
        }
        "application/strategic-merge-patch+json" => {
            return Err(ApiError::unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            ));
        }
        other => {
            return Err(ApiError::unsupported_media_type(format!("unknown patch type {other:?}")));
        }
    };
    if !new["metadata"].is_object() {
        return Err(ApiError::bad_request("the patch leaves no metadata"));
    }
    // Only a `resourceVersion` in the patch is a precondition. So if the patch has no `resourceVersion`, remove the
    // stored object's `resourceVersion` from the result.
    if body["metadata"]["resourceVersion"].is_null() && form != "application/json-patch+json" {
        write::put(&mut new["metadata"], "resourceVersion", None);
    }
    decode::identity(request, &mut new)?;
    keeps_uid(request, &new, &old)?;
    let warnings = decode::settle(request, &mut new)?;
    let stored = update::replace(state, request, &old, new)?;
    Ok(request.answer(StatusCode::OK, &stored, warnings))
}

/// Refuses a patch that changes the UID.
fn keeps_uid(request: &Request<'_>, new: &Value, old: &Value) -> Result<(), ApiError> {
    if meta(new, "uid") == meta(old, "uid") {
        return Ok(());
    }
    let cause = Cause::invalid("metadata.uid", &new["metadata"]["uid"].to_string(), "field is immutable");
    Err(ApiError::invalid(&request.resource.kind_subject(request.name), &[cause]))
}

/// Handles a server-side apply.
fn apply(state: &mut State, request: &Request<'_>) -> Result<Answer, ApiError> {
    let resource = request.resource;
    if request.call.options.field_manager.is_empty() {
        let subject = Subject { group: "meta.k8s.io".into(), kind: "PatchOptions".into(), name: String::new() };
        let cause = Cause::required("fieldManager", "is required for apply patch");
        return Err(ApiError::invalid(&subject, &[cause]));
    }
    let mut config = decode::parse(request)?;
    if !config["metadata"]["managedFields"].is_null() {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    let given_namespace = meta(&config, "namespace").to_owned();
    decode::identity(request, &mut config)?;
    let found = state.store.get(&resource.storage(), &request.key()).cloned();
    let live = found.as_ref().map(|found| super::present::present(resource, found));
    let empty = kinds::blank(resource);
    let ignored = kinds::reset_fields(resource, request.subresource);
    let rules = request.rules(&ignored);
    let mut managed = live.as_ref().map(|live| Managed::of(live)).unwrap_or_default();
    if let Some(live) = live.as_deref()
        && managed.is_empty()
    {
        managed.adopt_unmanaged(&empty, live, &resource.api_version(), &rules);
    }
    let force = request.call.options.force;
    let base = live.as_deref().unwrap_or(&empty);
    let mut new = managed
        .apply(base, &config, &request.manager(true), force, &rules)
        .map_err(|refusal| refused(request, &given_namespace, refusal))?;
    if !new["metadata"].is_object() {
        new["metadata"] = json!({});
    }
    let warnings = decode::settle(request, &mut new)?;
    let mut new = write::stored_form(resource.family, new);
    managed.write(&mut new);
    let Some(old) = found else {
        return created(state, request, new, warnings);
    };
    if !meta(&config, "uid").is_empty() {
        keeps_uid(request, &config, &old)?;
    }
    update::check_preconditions(resource, &old, &config)?;
    if let Some(custom) = &resource.custom {
        new["apiVersion"] = json!(format!("{}/{}", resource.group, custom.storage_version));
    }
    write::keep_reserved(resource, request.subresource, &old, &mut new);
    let stored = write::commit(state, resource, request.subresource, &old, new, request.call.options.dry_run)?;
    Ok(request.answer(StatusCode::OK, &stored, warnings))
}

fn created(state: &mut State, request: &Request<'_>, new: Value, warnings: Vec<String>) -> Result<Answer, ApiError> {
    let subject = request.resource.subject(request.name);
    if !request.subresource.is_empty() {
        return Err(ApiError::not_found(&subject));
    }
    let uid = meta(&new, "uid");
    if !uid.is_empty() {
        let why = format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
        return Err(ApiError::conflict(&subject, &why));
    }
    // An apply that creates the object also requires the permission to create.
    request.context.access.check(&request.attempt(Verb::Create), &state.store)?;
    let stored: Arc<Value> = create::insert(state, request, new)?;
    Ok(request.answer(StatusCode::CREATED, &stored, warnings))
}

fn refused(request: &Request<'_>, namespace: &str, refusal: Refusal) -> ApiError {
    match refusal {
        Refusal::Conflicts { message, causes } => ApiError::apply_conflict(message, &causes),
        Refusal::Misfit(why) => {
            let resource = request.resource;
            let group_version =
                if resource.group.is_empty() { format!("/{}", resource.version) } else { resource.api_version() };
            let message = format!(
                "failed to create typed patch object ({namespace}/{}; {group_version}, Kind={}): {why}",
                request.name, resource.kind
            );
            ApiError::plain(StatusCode::INTERNAL_SERVER_ERROR, "", message)
        }
    }
}
