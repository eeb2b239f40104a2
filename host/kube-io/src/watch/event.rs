//! Events of a watch.

use super::cached_object::Arrived;

/// One event of a watch.
#[derive(Debug)]
pub(super) enum Event {
    /// The object was added or modified.
    Is(Arrived),
    /// The object was deleted.
    Gone(Arrived),
    /// The watch has reported everything up to this version.
    Bookmark(u64),
}
