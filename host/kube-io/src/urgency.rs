//! The urgency of keys, which decides in which line of the queue they wait.

/// The line in which a key waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// The third line: one of many keys, after the fresh ones and at a limited pace.
    Paced,
    /// The second line: one of many keys, after the fresh ones.
    Bulk,
    /// The first line: an event concerns this key.
    Fresh,
}
