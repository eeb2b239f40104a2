//! Answers reviews: requests that ask who the user is, or which requests a user may send. The cluster never stores a
//! review.

use http::StatusCode;
use serde_json::json;

use super::{Answer, decode, request::Request};
use crate::{state::State, status::ApiError};

/// Answers a review.
pub(super) fn answer(state: &State, request: &Request<'_>) -> Result<Answer, ApiError> {
    let mut review = decode::object(request)?;
    let spec = &review["spec"];
    if request.resource.kind == "SelfSubjectReview" {
        let groups = json!(["system:authenticated"]);
        review["status"] = json!({"userInfo": {"username": request.call.user, "groups": groups}});
    } else if request.resource.kind == "SelfSubjectRulesReview" {
        let namespace = spec["namespace"].as_str().filter(|namespace| !namespace.is_empty());
        let namespace = namespace.ok_or_else(|| ApiError::bad_request("no namespace on request"))?;
        review["status"] = request.context.access.rules(&request.call.user, namespace, &state.store);
    } else {
        let user = spec["user"].as_str().unwrap_or(&request.call.user);
        let attributes = if spec["resourceAttributes"].is_object() {
            &spec["resourceAttributes"]
        } else {
            &spec["nonResourceAttributes"]
        };
        let allowed = request.context.access.review(user, attributes, &state.store);
        review["status"] = json!({"allowed": allowed});
    }
    Ok(Answer::Object {
        code: StatusCode::CREATED,
        object: std::sync::Arc::new(review),
        resource: std::sync::Arc::clone(request.resource),
        warnings: Vec::new(),
    })
}
