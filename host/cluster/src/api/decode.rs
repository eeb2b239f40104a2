//! Decodes bodies in JSON or YAML. Checks the kind of the object, and looks for fields that are not in its schema.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{bounds, options::FieldValidation, request::Request, yaml_text};
use crate::{catalogue::Family, kinds, schema, status::ApiError};

/// Parses a body.
pub(super) fn parse(request: &Request<'_>) -> Result<Value, ApiError> {
    let body = &request.call.body;
    let refuse = || {
        ApiError::unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: application/json, \
             application/yaml",
        )
    };
    #[cfg(feature = "kubectl")]
    if request.call.content_type.contains("protobuf") {
        return super::kubectl::protobuf::read(body).ok_or_else(refuse);
    }
    if ["cbor", "protobuf"].iter().any(|binary| request.call.content_type.contains(binary)) {
        return Err(refuse());
    }
    let yaml = request.call.content_type.contains("yaml");
    let text = std::str::from_utf8(body).unwrap_or_default();
    let text = if yaml { yaml_text::read(text)? } else { Cow::Borrowed(text) };
    if let Ok(value) = serde_json::from_str(&text) {
        return Ok(value);
    }
    let read = |_| ApiError::bad_request("error decoding the body: the body is neither JSON nor YAML");
    if yaml {
        serde_saphyr::from_str(&text).map_err(read)
    } else {
        serde_json::from_slice(body).map_err(|error| {
            let text = error.to_string();
            if text.starts_with("recursion limit exceeded") { bounds::too_deep() } else { ApiError::bad_request(text) }
        })
    }
}

/// Decodes an object of the request's resource. Checks the kind, the name and the namespace of the object.
pub(super) fn object(request: &Request<'_>) -> Result<Value, ApiError> {
    let mut value = parse(request)?;
    identity(request, &mut value)?;
    Ok(value)
}

/// Checks the object's kind, name and namespace. Takes a missing name or namespace from the request's path.
pub(super) fn identity(request: &Request<'_>, value: &mut Value) -> Result<(), ApiError> {
    let resource = request.resource;
    if !value.is_object() {
        return Err(ApiError::bad_request("the body is no object"));
    }
    if resource.custom.is_none() && value["kind"].is_null() && value["apiVersion"].is_null() {
        // A built-in object needs no `kind` and no `apiVersion` in its body: the path determines both.
        value["kind"] = json!(resource.kind);
        value["apiVersion"] = json!(resource.api_version());
    }
    if value["kind"].is_null() {
        return Err(ApiError::bad_request("Object 'Kind' is missing in the body"));
    }
    let (api_version, kind) = (resource.api_version(), resource.kind.as_str());
    if value["apiVersion"] != *api_version || value["kind"] != *kind {
        let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
        let (found_version, found_kind) = (text("apiVersion"), text("kind"));
        if found_version == api_version && resource.custom.is_none() {
            let (version, group) =
                (&resource.version, if resource.group.is_empty() { "core" } else { &resource.group });
            return Err(ApiError::bad_request(format!(
                "{found_kind} in version {version:?} cannot be handled as a {kind}: converting \
                 ({version}.{found_kind}) to ({group}.{kind}): unknown conversion"
            )));
        }
        return Err(ApiError::bad_request(format!(
            "{found_kind} in version {found_version:?} cannot be handled as a {kind}: the API version in the data \
             ({found_version}) does not match the expected API version ({api_version})"
        )));
    }
    if !value["metadata"].is_object() {
        value["metadata"] = json!({});
    }
    let text = |value: &Value, field: &str| value["metadata"][field].as_str().unwrap_or_default().to_owned();
    let namespace = text(value, "namespace");
    if resource.namespaced {
        if !namespace.is_empty() && namespace != request.namespace {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        value["metadata"]["namespace"] = json!(request.namespace);
    } else if let Some(metadata) = value["metadata"].as_object_mut() {
        metadata.remove("namespace");
    }
    let name = text(value, "name");
    if !request.name.is_empty() {
        if !name.is_empty() && name != request.name {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                request.name
            )));
        }
        value["metadata"]["name"] = json!(request.name);
    }
    Ok(())
}

/// Removes or refuses unknown fields, as the request asks, and converts the object to its stored form. Returns
/// warnings.
pub(super) fn settle(request: &Request<'_>, value: &mut Value) -> Result<Vec<String>, ApiError> {
    let resource = request.resource;
    bounds::check(value)?;
    let unknown = schema::prune::prune(value, &resource.node);
    let texts: Vec<String> = unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
    let mut warnings = Vec::new();
    match request.call.options.validation {
        FieldValidation::Strict if !texts.is_empty() => {
            return Err(ApiError::bad_request(format!(
                "{} in version {:?} cannot be handled as a {}: strict decoding error: {}",
                resource.kind,
                resource.version,
                resource.kind,
                texts.join(", ")
            )));
        }
        FieldValidation::Warn => warnings = texts,
        _ => {}
    }
    if resource.family != Family::Custom
        && let Some(cause) = types(value, resource)
    {
        return Err(ApiError::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {cause}",
            resource.kind, resource.version, resource.kind
        )));
    }
    if let Some(cause) = kinds::undecodable(resource, value) {
        return Err(ApiError::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {cause}",
            resource.kind, resource.version, resource.kind
        )));
    }
    kinds::normalise(resource, value);
    Ok(warnings)
}

/// Returns the error for the first value of a wrong type, or `None` if all types are correct. A real server reports
/// this error before all other errors.
fn types(value: &Value, resource: &crate::catalogue::Resource) -> Option<String> {
    schema::validate::check(value, &resource.node, "")
        .into_iter()
        // Treat null as an absent field.
        .find(|cause| cause.reason == "FieldValueTypeInvalid" && !cause.message.starts_with("Invalid value: \"null\""))
        .map(|cause| {
            let found = cause.message.split('"').nth(1).unwrap_or_default().to_owned();
            let wanted = cause.message.split("must be of type ").nth(1).and_then(|rest| rest.split(':').next());
            let go_type = match wanted.unwrap_or_default() {
                "integer" => "int32",
                "boolean" => "bool",
                other => other,
            };
            let part = if cause.field.starts_with("spec.") { "Spec" } else { "" };
            format!(
                "json: cannot unmarshal {found} into Go struct field {}{part}.{} of type {go_type}",
                resource.kind, cause.field
            )
        })
}
