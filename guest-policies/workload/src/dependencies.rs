//! The objects that an object depends on. Each dependency has an address and reports whether it is ready.
//!
//! If a dependency or its address is missing, no manifest would be correct. If a dependency has an address but is not
//! ready, the plan gets a plan gate.

use crate::assess::Phase;
use alloc::vec::Vec;
use kaos_policy_sdk::types::{Blocker, Outcome, Reference};
use kaos_policy_sdk::{Object, blocker};
use serde_json::Value;

/// The problems with an object's dependencies.
#[derive(Debug, Default)]
pub struct Dependencies {
    /// Dependencies that do not exist or have no address.
    pub missing: Vec<Blocker>,
    /// Dependencies that are not ready.
    pub unready: Vec<Blocker>,
    /// Dependencies that are not ready, and that have failed or have no available pod. The list does not contain a
    /// dependency that rolls out, because its old pods still serve.
    pub failing: Vec<Blocker>,
}

impl Dependencies {
    /// Returns the address of an existing dependency. Records a blocker if the dependency is not ready. `unready` is
    /// the message of this blocker.
    pub fn endpoint<'a>(&mut self, on: &Reference, unready: &str, found: &'a Object) -> Option<&'a str> {
        let Some(endpoint) = found.endpoint() else {
            // To the user, a dependency that is still starting is simply not ready.
            self.missing.push(blocker::new(on.clone(), "NoEndpoint", unready));
            return None;
        };
        if !found.is_ready() {
            let blocker = blocker::new(on.clone(), "NotReady", unready);
            let available = found.at(&["status", "deployment", "availableReplicas"]).and_then(Value::as_i64);
            if available.unwrap_or_default() < 1 {
                self.failing.push(blocker.clone());
            } else if found.str_at(&["status", "phase"]) == Some(Phase::Failed.as_str()) {
                let message = format!("{} {} has failed; its older pods still serve", on.kind, on.name);
                self.failing.push(Blocker { message, ..blocker.clone() });
            }
            self.unready.push(blocker);
        }
        Some(endpoint)
    }

    /// Returns the blockers to report after `outcome`. The first creation waits until all dependencies are ready. An
    /// existing object only needs dependencies that respond.
    pub fn wanting(&self, outcome: &Outcome) -> Vec<Blocker> {
        let wanting = if matches!(outcome, Outcome::Gated) { &self.unready } else { &self.failing };
        self.missing.iter().chain(wanting).cloned().collect()
    }
}
