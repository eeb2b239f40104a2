//! Other objects that one depends on: each has an address and says of itself whether it is ready.
//!
//! One that is missing, or has no address yet, leaves no correct manifest. One that has an address and is not ready is a
//! gate of the first creation.

use crate::assess::Phase;
use alloc::vec::Vec;
use kaos_policy_sdk::types::{Blocker, Outcome, Reference};
use kaos_policy_sdk::{Object, blocker};
use serde_json::Value;

/// What is not as it should be with the objects that one depends on.
#[derive(Debug, Default)]
pub struct Dependencies {
    /// What is missing, or has no address.
    pub missing: Vec<Blocker>,
    /// What is not ready.
    pub unready: Vec<Blocker>,
    /// What of it no pod answers for, or has failed: what is rolled out again goes on with the pods that it had.
    pub failing: Vec<Blocker>,
}

impl Dependencies {
    /// The address of an object that is there; `unready` is said of one that is not ready.
    pub fn endpoint<'a>(&mut self, on: &Reference, unready: &str, found: &'a Object) -> Option<&'a str> {
        let Some(endpoint) = found.endpoint() else {
            // Not ready is what the user sees of an object that is on its way.
            self.missing.push(blocker::new(on.clone(), "NoEndpoint", unready));
            return None;
        };
        if !found.is_ready() {
            let blocker = blocker::new(on.clone(), "NotReady", unready);
            let available = found.at(&["status", "deployment", "availableReplicas"]).and_then(Value::as_i64);
            if available.unwrap_or_default() < 1 {
                self.failing.push(blocker.clone());
            } else if found.str_at(&["status", "phase"]) == Some(Phase::Failed.as_str()) {
                let message = format!("{} {} has failed; pods of before still answer", on.kind, on.name);
                self.failing.push(Blocker { message, ..blocker.clone() });
            }
            self.unready.push(blocker);
        }
        Some(endpoint)
    }

    /// What is to be told after `outcome`. The first creation waits for what is ready; an object that runs can use what
    /// answers.
    pub fn wanting(&self, outcome: &Outcome) -> Vec<Blocker> {
        let wanting = if matches!(outcome, Outcome::Gated) { &self.unready } else { &self.failing };
        self.missing.iter().chain(wanting).cloned().collect()
    }
}
