//! From what is to answer for an object down to what served before it, as long as nobody takes the object.

use std::sync::Arc;

use kaos_policy::{
    cut::{STATUS, cut},
    manifest::OnRefusal,
    policy::PolicyId,
    render::{Rendered, Verdict},
};

use super::{Fallback, Kind, Without};

/// Revisions that an object may go without.
const FALLBACKS: usize = 4;
/// Answers that may be asked for in one pass to find out which ones.
const STEPS: usize = 12;

/// What answers for an object, and what does not although it serves.
#[derive(Debug, Clone)]
pub struct Descent {
    /// What answers.
    pub kind: Arc<Kind>,
    /// Revisions that the object goes without, the newest first.
    pub without: Vec<Without>,
    /// How many of these it went without from the beginning.
    missed: usize,
    steps: usize,
    trial: Option<Trial>,
}

/// A policy fails, and one thing after another is taken away that can be the reason: its own revision, or settings that it
/// has from others. What does not help is given back, so that nobody is blamed for what something else does.
#[derive(Debug, Clone)]
struct Trial {
    failed: PolicyId,
    from: Arc<Kind>,
    without: Vec<Without>,
    tried: Vec<Arc<str>>,
}

impl Descent {
    /// Begins with what is to answer, or stands in for what cannot.
    pub fn new(kind: Arc<Kind>) -> Self {
        let without = kind.missed().to_vec();
        Self { kind, missed: without.len(), without, steps: 0, trial: None }
    }

    /// Whether something else answers than what it began with.
    pub(crate) fn has_begun(&self) -> bool {
        self.steps > 0
    }

    /// Goes on to what served before, if what answers fails on the object, or refuses it and leaves it to that. Says whether
    /// it did.
    pub fn after(&mut self, rendered: &Rendered) -> bool {
        match &rendered.verdict {
            Verdict::Planned(_) => false,
            Verdict::Failed(failure) if failure.failure.says_nothing_of_the_object() => false,
            Verdict::Failed(failure) => self.failed(&failure.policy, &failure.to_string()),
            Verdict::Refused(refusal) => {
                let left = self.kind.left_by(&rendered.policy, refusal).filter(|_| self.has_room(&self.without));
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

    /// Goes on to what served before a policy that failed. Says whether it did.
    pub fn failed(&mut self, policy: &PolicyId, how: &str) -> bool {
        let again = self.trial.take().filter(|trial| trial.failed == *policy);
        let mut trial = again.unwrap_or_else(|| Trial {
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
            // No single one is the reason: without the newest, one that is older may be.
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

/// A revision that the object goes without, and why in as many words as a status has room for: it is kept for each object.
fn told(revision: Arc<str>, how: &str, counts: bool) -> Without {
    Without { revision, how: cut(how, STATUS).into_owned(), counts }
}
