//! From what is to answer for an object down to what served before it, as long as nobody takes the object.

use std::sync::Arc;

use kaos_policy::{
    failure::Failure,
    manifest::OnRefusal,
    policy::PolicyId,
    render::{Rendered, Verdict},
};

use super::{Fallback, Kind, Without};

/// How often an object may fall back in one pass.
const FALLBACKS: usize = 4;

/// What answers for an object, and what does not although it serves.
#[derive(Debug, Clone)]
pub struct Descent {
    /// What answers.
    pub kind: Arc<Kind>,
    /// Revisions that the object goes without, the newest first.
    pub without: Vec<Without>,
}

impl Descent {
    /// Begins with what is to answer.
    pub fn new(kind: Arc<Kind>) -> Self {
        Self { kind, without: Vec::new() }
    }

    /// Goes on to what served before, if what answers fails on the object, or refuses it and leaves it to that. Says whether
    /// it did.
    pub fn after(&mut self, rendered: &Rendered) -> bool {
        match &rendered.verdict {
            Verdict::Planned(_) => false,
            // No sandbox is free: that says nothing about the object.
            Verdict::Failed(failure) if matches!(*failure.failure, Failure::Sandbox(_)) => false,
            Verdict::Failed(failure) => self.failed(&failure.policy, failure.to_string()),
            Verdict::Refused(refusal) => {
                let left = self.kind.left_by(&rendered.policy, refusal);
                left.is_some_and(|(fallback, how)| {
                    let counts = fallback.on_refusal == OnRefusal::RollBack;
                    self.go(fallback, how, counts)
                })
            }
        }
    }

    /// Goes on to what served before a policy that failed. Says whether it did.
    pub fn failed(&mut self, policy: &PolicyId, how: String) -> bool {
        self.kind.without(policy).is_some_and(|fallback| self.go(fallback, how, true))
    }

    fn go(&mut self, Fallback { kind, blamed, .. }: Fallback, how: String, counts: bool) -> bool {
        let goes = self.without.len() < FALLBACKS;
        if goes {
            self.without.push(Without { revision: blamed, how, counts });
            self.kind = kind;
        }
        goes
    }
}
