//! The urgency of keys in the work queue.

/// The urgency of a key: how soon the queue returns the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// The key waits because of a policy swap. The queue returns paced keys after fresh keys, and at a limited pace.
    Paced,
    /// The key waits because the operator started, or because of a change that concerns many objects. The queue returns
    /// bulk keys after fresh keys.
    Bulk,
    /// The key waits because of an event that concerns its object, or because the time for its next pass has come.
    Fresh,
}
