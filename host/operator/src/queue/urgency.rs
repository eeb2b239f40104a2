//! The lines that keys wait in.

/// Which line a key waits in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// One of many: when there is time, and at a pace.
    Paced,
    /// One of many: when there is time.
    Bulk,
    /// Something happened to it.
    Fresh,
}
