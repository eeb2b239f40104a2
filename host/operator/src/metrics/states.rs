//! States of passes and objects, as metric labels.

use std::collections::BTreeMap;

/// The result of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PassResult {
    /// The pass wrote nothing, because the cluster already matched the plan.
    Settled,
    /// The pass asked no policy, because a proof of an earlier process shows that the object is settled.
    Skipped,
    /// The pass wrote a child or the status.
    Changed,
    /// The object waits, for example for a needed object or a plan gate.
    ///
    /// The object can also wait for its policy, for the deletion of a child, or until another owner frees the name of a
    /// child.
    Waiting,
    /// The object waits, because its kind has used up its budget in the object's namespace.
    OverBudget,
    /// The policy refused the object, or the host rejected the plan.
    Refused,
    /// The policy failed.
    Failed,
    /// A request to the API server failed, so the operator retries the pass.
    Retried,
    /// The object is gone or being deleted.
    Gone,
}

impl PassResult {
    pub(super) const ALL: [Self; 9] = [
        Self::Settled,
        Self::Skipped,
        Self::Changed,
        Self::Waiting,
        Self::OverBudget,
        Self::Refused,
        Self::Failed,
        Self::Retried,
        Self::Gone,
    ];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Skipped => "skipped",
            Self::Changed => "changed",
            Self::Waiting => "waiting",
            Self::OverBudget => "over_budget",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Retried => "retried",
            Self::Gone => "gone",
        }
    }
}

/// The object's condition `Ready`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Readiness {
    /// The condition `Ready` is true.
    True,
    /// The condition `Ready` is false.
    False,
    /// The condition `Ready` is unknown.
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

/// The reason why the expected policy does not serve an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unserved {
    /// No policy answers for the object's kind in its namespace.
    NoPolicy,
    /// The policy fails on the object, and no fallback answers.
    PolicyFailed,
    /// A fallback answers for the object.
    FellBack,
}

impl Unserved {
    pub(super) const ALL: [Self; 3] = [Self::NoPolicy, Self::PolicyFailed, Self::FellBack];

    /// Returns the label's value, which is also the reason in the object's conditions.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::NoPolicy => "NoPolicy",
            Self::PolicyFailed => "PolicyFailed",
            Self::FellBack => "FellBack",
        }
    }
}

/// The numbers of objects of a kind, by state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    pub(super) ready: BTreeMap<Readiness, usize>,
    pub(super) unserved: BTreeMap<Unserved, usize>,
}

impl Tally {
    /// Counts an object by its readiness in the last status, and by the reason why the expected policy does not serve
    /// it. Either can be `None`.
    pub fn add(&mut self, ready: Option<Readiness>, unserved: Option<Unserved>) {
        if let Some(ready) = ready {
            *self.ready.entry(ready).or_default() += 1;
        }
        if let Some(unserved) = unserved {
            *self.unserved.entry(unserved).or_default() += 1;
        }
    }
}
