//! The result of one part of the bench.

/// The result of one part of the bench.
pub(crate) struct Part {
    /// The text for the performance page.
    pub(crate) text: String,
    /// The missed aim, if any.
    pub(crate) missed: Option<String>,
}
