//! Steps down from the active policies to their predecessors until a policy can answer for an object.

use std::sync::Arc;

use kaos_policy::{
    cut::{STATUS, cut},
    manifest::OnRefusal,
    policy::PolicyId,
    render::{Rendered, Verdict},
};

use super::{Fallback, Kind, Without};

/// The maximum number of revisions that the operator leaves out for one object. The limit does not include the
/// revisions of [`Kind::missed`], which the operator leaves out because it cannot load them.
const FALLBACKS: usize = 4;
/// The maximum number of steps to a fallback in one pass, while the operator searches for the revision that causes a
/// failure.
const STEPS: usize = 12;

/// The policies that answer for an object, and the active revisions that the operator leaves out for this object.
#[derive(Debug, Clone)]
pub struct Descent {
    /// The policies that answer.
    pub kind: Arc<Kind>,
    /// The revisions that the operator leaves out for this object, in the order in which it left them out.
    pub without: Vec<Without>,
    /// The number of revisions that the operator leaves out from the beginning, because it cannot load them.
    missed: usize,
    steps: usize,
    trial: Option<BlameTrial>,
}

/// The search for the cause of a failure. The search leaves out one possible cause after the other: the revision of the
/// policy itself, or settings from other packages. If a revision was not the cause, the search restores this revision.
/// So the operator does not blame one revision for the failure of another revision.
#[derive(Debug, Clone)]
struct BlameTrial {
    failed: PolicyId,
    from: Arc<Kind>,
    without: Vec<Without>,
    tried: Vec<Arc<str>>,
}

impl Descent {
    /// Starts with the policies in `kind`. If these policies are fallbacks for revisions that the operator cannot load,
    /// `without` starts with these revisions.
    pub fn new(kind: Arc<Kind>) -> Self {
        let without = kind.missed().to_vec();
        Self { kind, missed: without.len(), without, steps: 0, trial: None }
    }

    /// Returns whether the operator already stepped to a fallback.
    pub(crate) fn has_begun(&self) -> bool {
        self.steps > 0
    }

    /// Steps to a fallback if the policy failed on the object. After a refusal, steps to a fallback only if the
    /// `policy.yaml` of the revision to leave out asks for this, or if a needed object exceeds the size limit. Returns
    /// whether there was a fallback.
    pub fn after(&mut self, rendered: &Rendered) -> bool {
        match &rendered.verdict {
            Verdict::Planned(_) => false,
            Verdict::Failed(failure) if failure.failure.says_nothing_of_the_object() => false,
            Verdict::Failed(failure) => self.failed(&failure.policy, &failure.to_string()),
            Verdict::Refused(refusal) => {
                let left = self.kind.left_by(rendered.refusing(), refusal).filter(|_| self.has_room(&self.without));
                let Some((Fallback { kind, blamed, on_refusal }, how)) = left else { return false };
                let counts = on_refusal == OnRefusal::RollBack;
                self.trial = None;
                self.steps += 1;
                self.without.push(told(blamed, &how, counts));
                self.kind = kind;
                true
            }
        }
    }

    /// Steps to a fallback for a policy that failed. Returns whether there was a fallback.
    pub fn failed(&mut self, policy: &PolicyId, how: &str) -> bool {
        let again = self.trial.take().filter(|trial| trial.failed == *policy);
        let mut trial = again.unwrap_or_else(|| BlameTrial {
            failed: policy.clone(),
            from: Arc::clone(&self.kind),
            without: self.without.clone(),
            tried: Vec::new(),
        });
        let blame = |revision| told(revision, how, true);
        let mut next = trial.from.without(policy, &trial.tried);
        if next.is_none()
            && let Some(Fallback { kind, blamed, .. }) = trial.from.without(policy, &[])
        {
            // The policy fails, no matter which single revision is left out. So keep leaving out the newest revision,
            // and search among the older revisions for a second cause.
            trial.without.push(blame(blamed));
            trial.tried.clear();
            next = kind.without(policy, &[]);
            trial.from = kind;
        }
        let next = next.filter(|_| self.has_room(&trial.without));
        let Some(Fallback { kind, blamed, .. }) = next else { return false };
        self.steps += 1;
        self.without.clone_from(&trial.without);
        self.without.push(blame(Arc::clone(&blamed)));
        self.kind = kind;
        trial.tried.push(blamed);
        self.trial = Some(trial);
        true
    }

    fn has_room(&self, without: &[Without]) -> bool {
        self.steps < STEPS && without.len() < self.missed + FALLBACKS
    }
}

/// Builds the entry for a revision that the operator leaves out. Cuts the message to the length of a status message,
/// because the operator keeps entries for every object.
fn told(revision: Arc<str>, how: &str, counts: bool) -> Without {
    Without { revision, how: cut(how, STATUS).into_owned(), counts, is_lost: false }
}
