//! Reads one object or a list. If the request has a limit, the server sends the list in pages.

use std::{collections::VecDeque, sync::Arc};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::StatusCode;
use serde_json::{Value, json};

use super::{Answer, present, request::Request};
use crate::{
    catalogue::Family,
    state::{Listed, State},
    status::ApiError,
};

/// Reads one object. If the request names a resource version, the answer is never older than this version.
pub(super) fn get(state: &mut State, request: &Request<'_>) -> Result<Answer, ApiError> {
    let wanted = check_revision(state, &request.call.options.resource_version)?;
    let (storage, back) = (request.resource.storage(), request.context.back);
    let object = if back == 0 || state.store.earlier_revision(&storage, back) < wanted {
        request.stored(state)?
    } else {
        let key = request.key();
        let earlier = state.store.earlier(&storage, request.namespace, back);
        let found = earlier.into_iter().find(|(found, _)| *found == key).map(|(_, object)| object);
        found.ok_or_else(|| ApiError::not_found(&request.resource.subject(request.name)))?
    };
    Ok(request.answer(StatusCode::OK, &object, Vec::new()))
}

/// Lists objects.
pub(super) fn list(state: &mut State, request: &Request<'_>) -> Result<Answer, ApiError> {
    let options = &request.call.options;
    let (revision, mut rest) = if options.continue_token.is_empty() {
        check_revision(state, &options.resource_version)?;
        let revision = state.store.earlier_revision(&request.resource.storage(), request.context.back);
        (revision, VecDeque::from(choose(state, request)?))
    } else {
        resume(state, &options.continue_token)?
    };
    let limit = if options.limit == 0 { rest.len() } else { options.limit };
    let page: Vec<Listed> = rest.drain(..limit.min(rest.len())).collect();
    let remaining = rest.len();
    let selective = !options.labels.is_empty() || !options.fields.is_empty();
    let next = (remaining > 0).then(|| {
        let token = state.snapshots.keep(revision, rest);
        URL_SAFE_NO_PAD.encode(json!({"v": "meta.k8s.io/v1", "rv": revision, "start": token}).to_string())
    });
    Ok(Answer::List {
        items: page.into_iter().map(|(_, object)| present::present(request.resource, &object)).collect(),
        revision,
        remaining: (next.is_some() && !selective).then_some(remaining),
        next,
        resource: Arc::clone(request.resource),
    })
}

/// Returns the objects that match the request's namespace and selectors.
pub(super) fn choose(state: &State, request: &Request<'_>) -> Result<Vec<Listed>, ApiError> {
    let options = &request.call.options;
    check_fields(request)?;
    let storage = request.resource.storage();
    let all: Vec<Listed> = if request.context.back == 0 {
        let objects = state.store.list(&storage, request.namespace);
        objects.map(|(key, object)| (key.clone(), Arc::clone(object))).collect()
    } else {
        state.store.earlier(&storage, request.namespace, request.context.back)
    };
    let wanted = |object: &Value| {
        options.labels.matches(object)
            && (options.fields.is_empty() || options.fields.matches(&present::in_shape(request.resource, object)))
    };
    Ok(all.into_iter().filter(|(_, object)| wanted(object)).collect())
}

/// Refuses field selectors that the kind does not support.
pub(super) fn check_fields(request: &Request<'_>) -> Result<(), ApiError> {
    let resource = request.resource;
    for path in request.call.options.fields.paths() {
        let common = path == "metadata.name" || (path == "metadata.namespace" && resource.namespaced);
        let of_kind = match resource.family {
            Family::Custom => resource
                .custom
                .as_ref()
                .is_some_and(|custom| custom.selectable.iter().any(|selectable| selectable == path)),
            Family::Event => {
                path.starts_with("involvedObject.")
                    || matches!(path, "reason" | "reportingComponent" | "source" | "type")
            }
            Family::NewEvent => {
                path.starts_with("regarding.") || matches!(path, "reason" | "reportingController" | "type")
            }
            Family::Pod => path.starts_with("spec.") || path.starts_with("status."),
            Family::ReplicaSet => path == "status.replicas",
            Family::Job => path == "status.successful",
            Family::Secret => path == "type",
            Family::Namespace => path == "status.phase",
            Family::Node => path == "spec.unschedulable",
            Family::Service => matches!(path, "spec.clusterIP" | "spec.type"),
            _ => false,
        };
        if !common && !of_kind {
            let plain =
                matches!(resource.family, Family::ConfigMap | Family::Lease | Family::Rbac | Family::Deployment);
            return Err(ApiError::bad_request(if plain {
                format!("\"{path}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
            } else {
                format!("field label not supported: {path}")
            }));
        }
    }
    Ok(())
}

fn resume(state: &State, token: &str) -> Result<(u64, VecDeque<Listed>), ApiError> {
    let invalid = || ApiError::bad_request("continue key is not valid: the continue token cannot be read");
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| invalid())?;
    let token: Value = serde_json::from_slice(&bytes).map_err(|_| invalid())?;
    let start = token["start"].as_u64().ok_or_else(invalid)?;
    state.snapshots.get(start).ok_or_else(|| {
        ApiError::expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.",
        )
    })
}

/// Returns the minimum resource version of a read. Refuses a version that is newer than the store's version.
fn check_revision(state: &State, wanted: &str) -> Result<u64, ApiError> {
    let wanted: u64 = match wanted {
        "" => return Ok(0),
        text => text.parse().map_err(|_| {
            ApiError::bad_request(format!(
                "Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
            ))
        })?,
    };
    let current = state.store.revision();
    if wanted <= current {
        return Ok(wanted);
    }
    let mut error = ApiError::plain(
        StatusCode::GATEWAY_TIMEOUT,
        "Timeout",
        format!("Timeout: Too large resource version: {wanted}, current: {current}"),
    );
    error.details =
        Some(json!({"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1}));
    Err(error)
}
