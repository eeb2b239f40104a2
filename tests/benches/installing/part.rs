//! The result of one part of the bench.

/// The result of one part of the bench.
pub(crate) struct Part {
    /// The text for the performance page.
    pub(crate) text: String,
    /// The exceeded upper bound, if any.
    pub(crate) missed: Option<String>,
}
