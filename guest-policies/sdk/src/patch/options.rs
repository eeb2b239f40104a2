//! What to do beyond Go's rules.

/// What to do beyond Go's rules.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options {
    /// Members that exclude each other (`value` and `valueFrom`, the handlers of a probe, the sources of a
    /// volume) replace each other, and are refused side by side in one patch.
    pub(super) exclusive: bool,
}
