//! The objects that an object depends on. The status of each dependency shows its address, and whether it is
//! ready.
//!
//! While a dependency or its address is missing, the policy cannot build a correct manifest. A dependency that has an
//! address but is not ready causes a plan gate.
//!
//! Plan gates hold back only the first apply. So after this apply, the policy reads only whether a dependency serves. A
//! rollout or a new label of the dependency then begins no pass over the object. The policy reads more fields only if
//! the dependency does not serve or does not offer what the object needs.

use crate::assess::Phase;
use alloc::{borrow::ToOwned, format, string::String, vec::Vec};
use kaos_policy_sdk::types::{Blocker, Need, Outcome, Reference, Subject};
use kaos_policy_sdk::{Lookup, NeedExt as _, Object, SubjectExt, blocker, need};
use serde_json::Value;

/// The fields that show whether a dependency serves.
const SERVES: [&str; 3] = ["status.endpoint", "status.deployment.availableReplicas?", "status.phase[=\"Failed\"]"];
/// The fields of a dependency that the policy reads if [`SERVES`] is not enough.
const ALL: [&str; 4] =
    ["status.endpoint", "status.ready", "status.deployment.availableReplicas", "status.phase[=\"Failed\"]"];

/// A reference to a dependency, and the fields that the policy reads in addition to the dependency's status.
#[derive(Debug)]
pub struct Dependency {
    /// The dependency.
    pub on: Reference,
    /// The fields that the policy reads before the first apply of the object, and while the dependency does not serve
    /// or does not offer what the object needs.
    pub all: Vec<String>,
    /// The fields that the policy always reads after the first apply of the object.
    pub brief: Vec<String>,
}

impl Dependency {
    /// Returns the dependency `on`. The policy reads the dependency's status and these `fields`.
    pub fn new(on: Reference, fields: &[&str]) -> Self {
        let fields: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
        Self { on, all: fields.clone(), brief: fields }
    }

    /// Returns the needs for the dependency. `suffices` tells whether a dependency that serves also offers what the
    /// object needs.
    pub fn needs(self, subject: &Subject, suffices: impl Fn(&Object) -> bool) -> impl Iterator<Item = Need> {
        let Self { on, all, brief } = self;
        let id = id(&on);
        let all_of = |id: String| need::named(id, on.clone()).fields(ALL).fields(all.clone());
        if !subject.applied {
            return [Some(all_of(id)), None].into_iter().flatten();
        }
        let is_enough = |found: &Object| serves(found) && suffices(found);
        let more = subject.one(&id).there().is_some_and(|found| !is_enough(&found));
        let more = more.then(|| all_of(id_of_all(&id)));
        [Some(need::named(id, on.clone()).fields(SERVES).fields(brief)), more].into_iter().flatten()
    }
}

/// Returns the id of the need for a dependency.
pub fn id(on: &Reference) -> String {
    format!("{}/{}", on.kind, on.name)
}

fn id_of_all(id: &str) -> String {
    format!("{id}/all")
}

/// Returns the dependency, with the fields that the policy reads.
pub fn found(subject: &Subject, on: &Reference) -> Lookup<Object> {
    let id = id(on);
    match subject.one(&id_of_all(&id)) {
        Lookup::Unasked => subject.one(&id),
        all => all,
    }
}

/// Returns whether a dependency serves, judged by the fields in [`SERVES`].
fn serves(found: &Object) -> bool {
    found.endpoint().is_some() && is_brief(found) && !has_failed(found)
}

/// Returns whether `found` shows only that pods are available, and not their number. If the policy reads the fields in
/// [`SERVES`], the host replaces the number of available pods by true.
fn is_brief(found: &Object) -> bool {
    found.at(&["status", "deployment", "availableReplicas"]) == Some(&Value::Bool(true))
}

fn has_failed(found: &Object) -> bool {
    found.str_at(&["status", "phase"]) == Some(Phase::Failed.as_str())
}

/// The blockers that an object's dependencies cause.
#[derive(Debug, Default)]
pub struct Dependencies {
    /// Dependencies that do not exist or have no address.
    pub missing: Vec<Blocker>,
    /// Dependencies that are not ready.
    pub unready: Vec<Blocker>,
    /// The unready dependencies that have failed or have no available pod. A dependency that is unready only because of
    /// its own rollout is not in this list: its old pods still serve.
    pub failing: Vec<Blocker>,
}

impl Dependencies {
    /// Returns the address of an existing dependency. Records a blocker if the dependency is not ready. `unready` is
    /// the message of this blocker.
    pub fn endpoint<'a>(&mut self, on: &Reference, unready: &str, found: &'a Object) -> Option<&'a str> {
        let Some(endpoint) = found.endpoint() else {
            // For the user, a dependency without an endpoint is simply not ready, so use the same message.
            self.missing.push(blocker::new(on.clone(), "NoEndpoint", unready));
            return None;
        };
        if !is_brief(found) && !found.is_ready() {
            let blocker = blocker::new(on.clone(), "NotReady", unready);
            let available = found.at(&["status", "deployment", "availableReplicas"]).and_then(Value::as_i64);
            if available.unwrap_or_default() < 1 {
                self.failing.push(blocker.clone());
            } else if has_failed(found) {
                let message =
                    format!("{kind} {name} has failed; its older pods still serve", kind = on.kind, name = on.name);
                self.failing.push(Blocker { message, ..blocker.clone() });
            }
            self.unready.push(blocker);
        }
        Some(endpoint)
    }

    /// Returns the blockers to report after `outcome`. The first apply waits until all dependencies are ready. After
    /// the first apply, the object only needs dependencies that serve.
    pub fn wanting(&self, outcome: &Outcome) -> Vec<Blocker> {
        let wanting = if matches!(outcome, Outcome::Gated) { &self.unready } else { &self.failing };
        self.missing.iter().chain(wanting).cloned().collect()
    }
}
