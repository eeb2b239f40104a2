//! Rules beyond Go's.

/// Rules beyond Go's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options {
    /// Members that exclude each other (`value` and `valueFrom`, the handlers of a probe, the sources of a volume)
    /// replace each other. One patch that sets two of them is refused.
    pub(super) exclusive: bool,
}
