//! The annotation with which a user names the trace of a change.

/// The annotation that names the trace of a change of the object. The field of the W3C trace context has the same name.
pub(super) const TRACEPARENT: &str = "traceparent";
