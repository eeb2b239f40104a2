//! The mask that replaces secret values, and bytes that `Debug` hides.

/// The text that replaces a secret value.
pub const MASK: &str = "********";

/// The minimum length, in bytes, of a secret value that the module masks anywhere within other texts. Shorter values
/// could occur in unrelated text.
pub(super) const SHORTEST: usize = 5;

/// Bytes that `Debug` does not show.
#[derive(Clone, Default)]
pub struct Hidden(pub Vec<u8>);

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(MASK)
    }
}
