//! Options for rules that Go's merge does not have.

/// Rules that Go's merge does not have.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options {
    /// Whether members that exclude each other (`value` and `valueFrom`, the handlers of a probe, the sources of a
    /// volume) replace each other. If true, the merge refuses a patch that sets two of these members.
    pub(super) exclusive: bool,
}
