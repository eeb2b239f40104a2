//! The urgency of keys.

/// The line that a key waits in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// One of many keys: after the fresh ones, at a limited pace.
    Paced,
    /// One of many keys: after the fresh ones.
    Bulk,
    /// An event concerns the key.
    Fresh,
}
