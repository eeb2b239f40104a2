//! Renders answers as HTTP responses.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use jiff::Timestamp;
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Value, json};

use super::body::Body;
use crate::{
    api::{self, Answer, Presentation},
    catalogue::{Family, Resource},
    faults::Failure,
    status::ApiError,
};

const JSON: &str = "application/json";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Renders an answer that is not a stream.
#[cfg_attr(not(feature = "kubectl"), expect(unused_variables, reason = "only tables need the columns and the time"))]
pub(crate) fn render(answer: &Answer, accept: &str, include: &str, now: Timestamp) -> Response<Body> {
    match answer {
        Answer::Object { code, object, resource, warnings } => {
            let value = match Presentation::of_accept(accept) {
                #[cfg(feature = "kubectl")]
                Presentation::Table => {
                    let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                    api::render_table(resource, &[object], &metadata, include, true, now)
                }
                Presentation::Metadata => api::metadata_of(object),
                Presentation::Whole => return with_warnings(respond(*code, JSON, bytes(&**object)), warnings),
            };
            with_warnings(respond(*code, JSON, bytes(&value)), warnings)
        }
        Answer::List { items, revision, next, remaining, resource } => {
            let mut metadata = json!({"resourceVersion": revision.to_string()});
            if let Some(next) = next {
                metadata["continue"] = json!(next);
            }
            if let Some(remaining) = remaining {
                metadata["remainingItemCount"] = json!(remaining);
            }
            let body = match Presentation::of_accept(accept) {
                #[cfg(feature = "kubectl")]
                Presentation::Table => bytes(&api::render_table(resource, items, &metadata, include, true, now)),
                Presentation::Metadata => {
                    let items: Vec<Value> = items.iter().map(|item| api::metadata_of(item)).collect();
                    bytes(
                        &json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": items}),
                    )
                }
                Presentation::Whole => bytes(&ListBody { resource, metadata: &metadata, items }),
            };
            respond(StatusCode::OK, JSON, body)
        }
        Answer::Document(value) => respond(StatusCode::OK, JSON, bytes(value)),
        Answer::Discovery(value) => respond(StatusCode::OK, AGGREGATED, bytes(value)),
        Answer::Text(text) => respond(StatusCode::OK, "text/plain", Bytes::from(text.clone())),
        Answer::Watch(_) => error(&ApiError::bad_request("a watch is answered as a stream")),
    }
}

/// The body of the answer to a list. Items of built-in kinds do not contain `kind` and `apiVersion`.
struct ListBody<'a> {
    resource: &'a Resource,
    metadata: &'a Value,
    items: &'a [Arc<Value>],
}

impl Serialize for ListBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", &format!("{}List", self.resource.kind))?;
        map.serialize_entry("apiVersion", &self.resource.api_version())?;
        map.serialize_entry("metadata", self.metadata)?;
        if self.resource.family == Family::Custom {
            let items: Vec<&Value> = self.items.iter().map(|item| &**item).collect();
            map.serialize_entry("items", &items)?;
        } else {
            let items: Vec<Bare<'_>> = self.items.iter().map(|item| Bare(item)).collect();
            map.serialize_entry("items", &items)?;
        }
        map.end()
    }
}

/// Serializes an object without `kind` and `apiVersion`.
struct Bare<'a>(&'a Value);

impl Serialize for Bare<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.0.as_object().into_iter().flatten();
        serializer.collect_map(fields.filter(|(name, _)| !matches!(name.as_str(), "apiVersion" | "kind")))
    }
}

/// Renders an error.
pub(crate) fn error(error: &ApiError) -> Response<Body> {
    if error.is_page() {
        return respond(error.code, "text/plain; charset=utf-8", Bytes::from(error.message.clone()));
    }
    let mut response = respond(error.code, JSON, bytes(&error.to_status()));
    if let Some(seconds) = error.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// A real server's message about an outdated write.
const MODIFIED: &str = "the object has been modified; please apply your changes to the latest version and try again";

/// Returns the error for an injected failure. Returns `None` for a broken connection.
pub(crate) fn failure(failure: Failure, resource: &str, name: &str) -> Option<ApiError> {
    let subject = crate::status::Subject { kind: resource.to_owned(), name: name.to_owned(), ..Default::default() };
    Some(match failure {
        Failure::Disconnect => return None,
        Failure::Conflict => ApiError::conflict(&subject, MODIFIED),
        Failure::QuotaConflict => {
            let quota = crate::status::Subject { kind: "resourcequotas".into(), name: "team".into(), ..subject };
            ApiError::conflict(&quota, MODIFIED)
        }
        Failure::WebhookConflict => {
            let text = "admission webhook \"names.example.com\" denied the request: this name is reserved";
            ApiError::plain(StatusCode::CONFLICT, "Conflict", text)
        }
        Failure::Throttled(seconds) => {
            let text = "too many requests, please try again later";
            let mut error = ApiError::plain(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", text);
            error.retry_after = Some(seconds);
            error
        }
        Failure::Server(code) => {
            let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let (reason, text) = match code.as_u16() {
                503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
                504 => ("Timeout", "the server was unable to return a response in the time allotted"),
                _ => ("InternalError", "an error on the server has prevented the request from succeeding"),
            };
            ApiError::plain(code, reason, text)
        }
    })
}

fn bytes(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).map(Bytes::from).unwrap_or_default()
}

fn respond(code: StatusCode, content_type: &'static str, body: Bytes) -> Response<Body> {
    let body = Full::new(body).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn with_warnings(mut response: Response<Body>, warnings: &[String]) -> Response<Body> {
    for warning in warnings {
        let escaped = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{escaped}\"")) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    response
}
