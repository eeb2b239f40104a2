//! The errors of requests to the API server, and their effects on the pass.

use std::time::Duration;

use kaos_policy::cut::{NOTE, cut};

use crate::error_text::{is_misfit, with_causes};

/// After this number of consecutive failed passes, the status or an Event reports a transient error of the API server.
/// After fewer failures, the next retry probably succeeds.
pub(crate) const SHOWN_FROM: u32 = 3;

/// The class of a failed request, which decides whether and when the operator retries the pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// The object, its namespace or its type does not exist.
    Gone,
    /// The operator lacks a right, which an administrator may grant later.
    Forbidden,
    /// A retry may succeed. Contains the delay that the server asked for.
    Transient(Option<Duration>),
    /// The server rejects the content of the request, and will reject it again.
    Permanent,
}

/// A failed request to the API server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {message}")]
pub(crate) struct CallError {
    /// The request, such as `apply Service t/a`.
    pub(crate) what: String,
    pub(crate) class: Class,
    /// The server's message, or the reason why the server did not answer.
    pub(crate) message: String,
}

impl CallError {
    pub(crate) fn new(what: String, error: &kube::Error) -> Self {
        let class = match error {
            kube::Error::Api(status) => class_of(status),
            _ => Class::Transient(None),
        };
        // Cut the message, because a server may quote whole objects.
        Self { what, class, message: cut(&with_causes(error), NOTE).into_owned() }
    }

    /// Returns whether the server would reject an unchanged request again.
    pub(crate) fn is_final(&self) -> bool {
        self.class == Class::Permanent
    }

    /// Returns whether the status or an Event reports this error, which is the last of `failures` consecutive failures.
    /// A transient error is reported only after several consecutive failures.
    pub(crate) fn is_shown(&self, failures: u32) -> bool {
        let passing = matches!(self.class, Class::Transient(_) | Class::Gone);
        !passing || failures >= SHOWN_FROM
    }

    /// Returns whether the server says that the applied manifest does not fit the schema.
    pub(crate) fn is_misfit(&self) -> bool {
        is_misfit(&self.message)
    }
}

fn class_of(status: &kube::core::Status) -> Class {
    let details = status.details.as_ref();
    let wait = details.map(|details| u64::from(details.retry_after_seconds)).filter(|seconds| *seconds > 0);
    let terminating =
        details.is_some_and(|details| details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating"));
    match status.code {
        404 => Class::Gone,
        // The server refuses to create anything, because the namespace is being deleted.
        403 if terminating => Class::Gone,
        401 | 403 => Class::Forbidden,
        400 | 405 | 406 | 413 | 415 | 422 => Class::Permanent,
        500 if is_misfit(&status.message) => Class::Permanent,
        _ => Class::Transient(wait.map(Duration::from_secs)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn error(status: Value) -> CallError {
        let status = serde_json::from_value(status).unwrap();
        CallError::new("get Widget t/a".to_owned(), &kube::Error::Api(Box::new(status)))
    }

    fn class(code: u16, retry: u32, cause: &str) -> Class {
        let status = json!({
            "code": code, "message": "no", "reason": "",
            "details": {"retryAfterSeconds": retry, "causes": [{"reason": cause, "message": "", "field": ""}]},
        });
        error(status).class
    }

    #[test]
    fn errors_of_the_server_conflicts_and_throttling_are_tried_again() {
        for code in [409, 429, 500, 502, 503, 504] {
            assert_eq!(class(code, 0, ""), Class::Transient(None), "{code}");
        }
        assert_eq!(class(429, 7, ""), Class::Transient(Some(Duration::from_secs(7))));
    }

    #[test]
    fn an_answer_without_a_body_is_shown_as_its_code() {
        let proxy = error(json!({"code": 502, "message": "", "reason": "Failed to parse error data"}));
        assert_eq!(proxy.to_string(), "get Widget t/a: the API server answered 502");
        assert_eq!(proxy.class, Class::Transient(None));
    }

    #[test]
    fn missing_rights_may_be_granted_and_bad_manifests_stay_bad() {
        assert_eq!((class(401, 0, ""), class(403, 0, "")), (Class::Forbidden, Class::Forbidden));
        assert_eq!((class(422, 0, ""), class(400, 0, "")), (Class::Permanent, Class::Permanent));
        assert_eq!((class(404, 0, ""), class(403, 0, "NamespaceTerminating")), (Class::Gone, Class::Gone));
    }

    #[test]
    fn a_field_that_there_is_not_stays_bad_although_the_server_takes_the_blame() {
        let message = "failed to create typed patch object (t/a; apps/v1, Kind=Deployment): \
                       .spec.template.spec.nodeSelectr: field not declared in schema";
        let misfit = error(json!({"code": 500, "message": message, "reason": ""}));
        assert_eq!((misfit.class, misfit.is_misfit()), (Class::Permanent, true));
        let other = error(json!({"code": 500, "message": "etcdserver: request timed out", "reason": ""}));
        assert_eq!((other.class, other.is_misfit()), (Class::Transient(None), false));
    }
}
