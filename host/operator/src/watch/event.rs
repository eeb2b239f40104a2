//! What a watch tells.

use super::item::Arrived;

/// One event of a watch.
#[derive(Debug)]
pub(super) enum Event {
    /// There is this object.
    Is(Arrived),
    /// This object is gone.
    Gone(Arrived),
    /// Everything up to this version was told.
    Bookmark(u64),
}
