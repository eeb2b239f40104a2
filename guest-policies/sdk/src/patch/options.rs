//! Options for rules that Go's merge does not have.

/// Rules that Go's merge does not have.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options {
    /// Whether a member of the patch removes the members of the base that it excludes (`value` and `valueFrom`, the
    /// handlers of a probe, the sources of a volume). If true, the merge also refuses a patch with two such members.
    pub(super) exclusive: bool,
}
