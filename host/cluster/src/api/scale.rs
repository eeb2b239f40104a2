//! Serves the scale subresource.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Answer, bounds, decode, request::Request, update, write};
use crate::{
    catalogue::{Family, Resource, Scale},
    state::State,
    status::{ApiError, Cause},
    storage::{LabelSelector, meta},
};

/// Returns the scale of an object.
pub(super) fn get(state: &mut State, request: &Request<'_>) -> Result<Answer, ApiError> {
    let object = request.stored(state)?;
    Ok(Answer::value(scale_of(request.resource, &object)?))
}

/// Replaces the scale of an object.
pub(super) fn update(state: &mut State, request: &Request<'_>) -> Result<Answer, ApiError> {
    let old = request.stored(state)?;
    let scale = decode::parse(request)?;
    write_replicas(state, request, &old, &scale)
}

/// Patches the scale of an object.
pub(super) fn patch(state: &mut State, request: &Request<'_>) -> Result<Answer, ApiError> {
    let old = request.stored(state)?;
    let mut scale = scale_of(request.resource, &old)?;
    let body = decode::parse(request)?;
    if request.call.content_type.starts_with("application/json-patch") {
        scale = bounds::json_patched(&scale, &body)?;
    } else {
        let given = body["metadata"]["resourceVersion"].clone();
        json_patch::merge(&mut scale, &body);
        scale["metadata"]["resourceVersion"] = given;
    }
    write_replicas(state, request, &old, &scale)
}

fn write_replicas(
    state: &mut State,
    request: &Request<'_>,
    old: &Arc<Value>,
    scale: &Value,
) -> Result<Answer, ApiError> {
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or_default();
    if replicas < 0 {
        let subject =
            crate::status::Subject { group: "autoscaling".into(), kind: "Scale".into(), name: request.name.into() };
        let cause = Cause::invalid("spec.replicas", &replicas.to_string(), "must be greater than or equal to 0");
        return Err(ApiError::invalid(&subject, &[cause]));
    }
    if i32::try_from(replicas).is_err() {
        return Err(ApiError::bad_request(format!(
            "json: cannot unmarshal number {replicas} into Go struct field ScaleSpec.spec.replicas of type int32"
        )));
    }
    let mut new = (**old).clone();
    let wanted = scale["metadata"]["resourceVersion"].as_str();
    write::put(&mut new["metadata"], "resourceVersion", wanted.map(|wanted| json!(wanted)));
    let paths = paths(request.resource)?;
    if let Some(place) = new.pointer_mut(&pointer(&paths.replicas)) {
        *place = json!(replicas);
    } else if let Some((parent, field)) = pointer(&paths.replicas).rsplit_once('/') {
        let parent = new.pointer_mut(parent).ok_or_else(|| ApiError::bad_request("the object has no spec to scale"))?;
        parent[field] = json!(replicas);
    }
    let stored = update::replace(state, request, old, new)?;
    Ok(Answer::value(scale_of(request.resource, &stored)?))
}

fn paths(resource: &Resource) -> Result<&Scale, ApiError> {
    resource.scale.as_ref().ok_or_else(ApiError::no_route)
}

fn pointer(path: &str) -> String {
    path.replace('.', "/")
}

fn scale_of(resource: &Resource, object: &Value) -> Result<Value, ApiError> {
    let paths = paths(resource)?;
    if resource.custom.is_some() && object.pointer(&pointer(&paths.replicas)).is_none() {
        let message = format!("Internal error occurred: the spec replicas field {:?} does not exist", paths.replicas);
        let mut error = ApiError::plain(http::StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message);
        let why = format!("the spec replicas field {:?} does not exist", paths.replicas);
        error.details = Some(json!({"causes": [{"message": why}]}));
        return Err(error);
    }
    let number = |path: &str| object.pointer(&pointer(path)).and_then(Value::as_i64).unwrap_or_default();
    let selector = match (&resource.family, &paths.selector) {
        (Family::Custom, path) => {
            let found = path.as_ref().and_then(|path| object.pointer(&pointer(path)));
            found.and_then(Value::as_str).map(str::to_owned)
        }
        _ => Some(LabelSelector::of_object(&object["spec"]["selector"]).text()),
    };
    let mut status = json!({"replicas": number(&paths.status_replicas)});
    if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
        status["selector"] = json!(selector);
    }
    let mut metadata = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        let text = meta(object, field);
        if !text.is_empty() {
            metadata[field] = json!(text);
        }
    }
    Ok(json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": {"replicas": number(&paths.replicas)}, "status": status}))
}
