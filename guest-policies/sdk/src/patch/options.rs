//! Options for rules that Go's merge does not have.

/// Rules that Go's merge does not have.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options {
    /// Members that exclude each other (`value` and `valueFrom`, the handlers of a probe, the sources of a volume)
    /// replace each other. A patch that sets two of them is refused.
    pub(super) exclusive: bool,
}
