//! Errors of the API: `metav1.Status` with the codes, reasons and messages of a real server.

use http::StatusCode;
use serde_json::{Value, json};

/// An error in one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cause {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) field: String,
}

impl Cause {
    /// Creates an error for an invalid value. `shown` is the value as the message shows it, in quotes.
    pub(crate) fn invalid(field: &str, shown: &str, message: &str) -> Self {
        Self {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {shown}: {message}"),
            field: field.to_owned(),
        }
    }

    /// Creates an error for an invalid value that is too large to show.
    pub(crate) fn invalid_unnamed(field: &str, message: &str) -> Self {
        Self { reason: "FieldValueInvalid", message: format!("Invalid value: {message}"), field: field.to_owned() }
    }

    /// Creates an error for a value of the wrong JSON type.
    pub(crate) fn wrong_type(field: &str, found: &str, wanted: &str) -> Self {
        Self {
            reason: "FieldValueTypeInvalid",
            message: format!("Invalid value: \"{found}\": {field} in body must be of type {wanted}: \"{found}\""),
            field: field.to_owned(),
        }
    }

    /// Creates an error for a missing field.
    pub(crate) fn required(field: &str, detail: &str) -> Self {
        let message = if detail.is_empty() { "Required value".into() } else { format!("Required value: {detail}") };
        Self { reason: "FieldValueRequired", message, field: field.to_owned() }
    }

    /// Creates an error for a value that is not in the list of allowed values.
    pub(crate) fn unsupported(field: &str, found: &Value, allowed: &[Value]) -> Self {
        let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
        Self {
            reason: "FieldValueNotSupported",
            message: format!("Unsupported value: {found}: supported values: {}", allowed.join(", ")),
            field: field.to_owned(),
        }
    }

    /// Creates an error for a change or value that is never allowed.
    pub(crate) fn forbidden(field: &str, message: &str) -> Self {
        Self { reason: "FieldValueForbidden", message: format!("Forbidden: {message}"), field: field.to_owned() }
    }

    /// Creates an error for a value that must be unique but is not.
    pub(crate) fn duplicate(field: &str, value: &Value) -> Self {
        Self { reason: "FieldValueDuplicate", message: format!("Duplicate value: {value}"), field: field.to_owned() }
    }
}

/// The object or resource that an error is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) group: String,
    /// The plural name of the type. In errors about invalid objects, this field contains the kind instead.
    pub(crate) kind: String,
    pub(crate) name: String,
}

impl Subject {
    fn qualified(&self) -> String {
        if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) }
    }
}

/// An error that the API returns.
#[derive(Debug, Clone, thiserror::Error, PartialEq)]
#[error("{message}")]
pub(crate) struct ApiError {
    pub(crate) code: StatusCode,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) details: Option<Value>,
    pub(crate) retry_after: Option<u64>,
}

impl ApiError {
    /// Returns an error without details.
    pub(crate) fn plain(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, retry_after: None }
    }

    pub(crate) fn not_found(subject: &Subject) -> Self {
        Self::about(
            StatusCode::NOT_FOUND,
            "NotFound",
            subject,
            format!("{} \"{}\" not found", subject.qualified(), subject.name),
        )
    }

    /// Returns the error for a path that is not served.
    pub(crate) fn no_route() -> Self {
        let mut error =
            Self::plain(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource");
        error.details = Some(json!({}));
        error
    }

    /// Returns [`no_route`](Self::no_route) with a hint about the paths that are served.
    pub(crate) fn no_route_but(there_is: &str) -> Self {
        let mut error = Self::no_route();
        error.message = format!("{}: {there_is}", error.message);
        error
    }

    pub(crate) fn already_exists(subject: &Subject) -> Self {
        let message = format!("{} \"{}\" already exists", subject.qualified(), subject.name);
        Self::about(StatusCode::CONFLICT, "AlreadyExists", subject, message)
    }

    /// Returns the error for an outdated write, or for a precondition that is not met.
    pub(crate) fn conflict(subject: &Subject, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{}\": {why}", subject.qualified(), subject.name);
        Self::about(StatusCode::CONFLICT, "Conflict", subject, message)
    }

    pub(crate) fn forbidden(subject: &Subject, why: &str) -> Self {
        let name = &subject.name;
        let message = if name.is_empty() {
            format!("{} is forbidden: {why}", subject.qualified())
        } else {
            format!("{} \"{name}\" is forbidden: {why}", subject.qualified())
        };
        Self::about(StatusCode::FORBIDDEN, "Forbidden", subject, message)
    }

    /// Returns the error for a path of an unknown group. In a real server, the HTTP router answers such a request, and
    /// not the API.
    pub(crate) fn no_page() -> Self {
        Self::plain(StatusCode::NOT_FOUND, "", "404 page not found\n")
    }

    /// Returns whether the answer's body contains only the message.
    pub(crate) fn is_page(&self) -> bool {
        self.code == StatusCode::NOT_FOUND && self.reason.is_empty()
    }

    /// Returns the error for an object with invalid fields. `subject.kind` must contain the kind, such as `Deployment`.
    pub(crate) fn invalid(subject: &Subject, causes: &[Cause]) -> Self {
        let texts: Vec<String> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let list = if let [one] = texts.as_slice() { one.clone() } else { format!("[{}]", texts.join(", ")) };
        let message = format!("{} \"{}\" is invalid: {list}", subject.qualified(), subject.name);
        let mut error = Self::about(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", subject, message);
        error.add_causes(causes);
        error
    }

    /// Returns the error for a server-side apply that conflicts with other managers.
    pub(crate) fn apply_conflict(message: String, causes: &[Cause]) -> Self {
        let mut error = Self::plain(StatusCode::CONFLICT, "Conflict", message);
        error.details = Some(json!({}));
        error.add_causes(causes);
        error
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::plain(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// Returns the error for a request that is too large.
    pub(crate) fn too_large(message: &str) -> Self {
        let message = format!("Request entity is too large: {message}");
        Self::plain(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// Returns the error for a revision or continue token that is no longer available.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::plain(StatusCode::GONE, "Expired", message)
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        let mut error = Self::plain(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message);
        error.details = Some(json!({}));
        error
    }

    pub(crate) fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    pub(crate) fn about(code: StatusCode, reason: &'static str, subject: &Subject, message: String) -> Self {
        let mut details = json!({"kind": subject.kind});
        for (key, value) in [("name", &subject.name), ("group", &subject.group)] {
            if !value.is_empty() {
                details[key] = json!(value);
            }
        }
        Self { code, reason, message, details: Some(details), retry_after: None }
    }

    fn add_causes(&mut self, causes: &[Cause]) {
        let causes: Vec<Value> = causes
            .iter()
            .map(|cause| json!({"reason": cause.reason, "message": cause.message, "field": cause.field}))
            .collect();
        self.details.get_or_insert_with(|| json!({}))["causes"] = json!(causes);
    }

    /// Returns the body of the answer.
    pub(crate) fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code.as_u16(),
        });
        if self.reason.is_empty() {
            status.as_object_mut().map(|status| status.remove("reason"));
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        if let Some(seconds) = self.retry_after {
            status["details"]["retryAfterSeconds"] = json!(seconds);
        }
        status
    }
}
