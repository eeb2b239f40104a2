//! The urgency of keys, which decides in which line of the queue they wait.

/// The line in which a key waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// The third line, after the fresh keys and at a limited pace: a policy swap concerns many keys.
    Paced,
    /// The second line, after the fresh keys: a start or a change concerns many keys.
    Bulk,
    /// The first line: an event concerns the key.
    Fresh,
}
