//! The annotation in which a user or a pipeline passes the trace of a change to the operator.

/// The annotation of an object that names the trace of its last change, in the format of the W3C header of the same
/// name.
pub(super) const TRACEPARENT: &str = "traceparent";
