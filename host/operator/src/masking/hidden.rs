//! What stands in the place of a secret value, and bytes that are never shown.

/// The text that replaces a secret value.
pub const MASK: &str = "********";

/// The minimum length of a secret value that is masked within other texts, in bytes. Shorter values would mask unrelated
/// text.
pub(super) const SHORTEST: usize = 5;

/// Bytes that `Debug` does not show.
#[derive(Clone, Default)]
pub struct Hidden(pub Vec<u8>);

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(MASK)
    }
}
