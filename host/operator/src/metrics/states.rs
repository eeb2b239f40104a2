//! What passes, objects and watches can come to, as metrics name it.

use std::collections::BTreeMap;

/// How a pass ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PassResult {
    /// Everything was as planned already.
    Settled,
    /// Something was written.
    Changed,
    /// A need is missing or not known yet, or the policy holds the plan back.
    Waiting,
    /// The policy does not take the spec, or the host does not take the plan.
    Refused,
    /// The policy failed.
    Failed,
    /// The API server did not do what was asked; the pass is made again.
    Retried,
    /// The object is gone or going.
    Gone,
}

impl PassResult {
    pub(super) const ALL: [Self; 7] =
        [Self::Settled, Self::Changed, Self::Waiting, Self::Refused, Self::Failed, Self::Retried, Self::Gone];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Changed => "changed",
            Self::Waiting => "waiting",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Retried => "retried",
            Self::Gone => "gone",
        }
    }
}

/// An object's condition `Ready`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Readiness {
    /// It is ready.
    True,
    /// It is not.
    False,
    /// Nobody can say.
    Unknown,
}

impl Readiness {
    pub(super) const ALL: [Self; 3] = [Self::True, Self::False, Self::Unknown];

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::True => "true",
            Self::False => "false",
            Self::Unknown => "unknown",
        }
    }
}

/// Why an object is not served by what should serve it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unserved {
    /// Nothing answers for objects of its kind where it is.
    NoPolicy,
    /// What answers for it fails on it.
    PolicyFailed,
    /// What served before answers for it.
    FellBack,
}

impl Unserved {
    pub(super) const ALL: [Self; 3] = [Self::NoPolicy, Self::PolicyFailed, Self::FellBack];

    /// In the words of the conditions.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::NoPolicy => "NoPolicy",
            Self::PolicyFailed => "PolicyFailed",
            Self::FellBack => "FellBack",
        }
    }
}

/// How the objects of a kind stand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    pub(super) ready: BTreeMap<Readiness, usize>,
    pub(super) unserved: BTreeMap<Unserved, usize>,
}

impl Tally {
    /// Adds an object: what was told of its readiness, if anything was, and why it is not served as it should be, if it is
    /// not.
    pub fn add(&mut self, ready: Option<Readiness>, unserved: Option<Unserved>) {
        if let Some(ready) = ready {
            *self.ready.entry(ready).or_default() += 1;
        }
        if let Some(unserved) = unserved {
            *self.unserved.entry(unserved).or_default() += 1;
        }
    }
}

/// What the watch on a type is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchState {
    /// The cluster does not serve the type.
    Unserved,
    /// The operator may not watch it.
    Forbidden,
    /// It is being listed for the first time.
    Listing,
    /// What is in memory follows the cluster.
    Synced,
    /// It broke and is tried again.
    Failing,
}

impl WatchState {
    pub(super) const ALL: [Self; 5] = [Self::Unserved, Self::Forbidden, Self::Listing, Self::Synced, Self::Failing];

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Unserved => "unserved",
            Self::Forbidden => "forbidden",
            Self::Listing => "listing",
            Self::Synced => "synced",
            Self::Failing => "failing",
        }
    }
}
