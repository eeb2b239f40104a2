//! The text of an Event about an object.

/// The content of an Event: a change of a condition, or the result of a step such as the cleanup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventText {
    /// The reason of the Event. For a changed condition, this is the condition's new reason.
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) warning: bool,
}
