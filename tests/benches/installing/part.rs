//! The result of one part of the bench.

/// The result of one part of the bench.
pub(crate) struct Part {
    /// The text for the performance page.
    pub(crate) text: String,
    /// A message, if the part exceeds its upper bound.
    pub(crate) missed: Option<String>,
}
