//! Builds the parts of an answer other than manifests: refusals, gates, notes and conditions.

use crate::types::{Refusal, Violation};
use alloc::{string::String, vec::Vec};

/// Builds refusals. A refusal is an answer without a plan.
pub mod refusal {
    use crate::types::{Blocker, Refusal, Violation};
    use alloc::{string::String, vec::Vec};

    /// Refuses an object that is invalid at `path`. `message` tells the user the mistake and how to fix it.
    pub fn invalid(path: impl Into<String>, message: impl Into<String>) -> Refusal {
        Refusal::Invalid(vec![Violation { path: path.into(), message: message.into() }])
    }

    /// Refuses the object until one of the objects in `blockers` appears or changes.
    pub fn waiting(blockers: Vec<Blocker>) -> Refusal {
        Refusal::Waiting(blockers)
    }

    /// Refuses an object that the cluster or the policy does not support.
    pub fn unsupported(message: impl Into<String>) -> Refusal {
        Refusal::Unsupported(message.into())
    }
}

/// Builds blockers. A blocker names the object that a refusal or a plan gate waits for.
pub mod blocker {
    use crate::types::{Blocker, Reference};
    use alloc::string::String;

    /// Returns a blocker that waits for `on`.
    pub fn new(on: Reference, reason: impl Into<String>, message: impl Into<String>) -> Blocker {
        Blocker { on, reason: reason.into(), message: message.into() }
    }

    /// Returns a blocker that waits for an absent object. An example of the message: `ModelAPI llm not found`.
    pub fn not_found(on: Reference) -> Blocker {
        let message = format!("{} {} not found", on.kind, on.name);
        new(on, "NotFound", message)
    }

    /// Returns a blocker that waits for an endpoint. An example of the message: `ModelAPI llm has no endpoint yet`.
    pub fn no_endpoint(on: Reference) -> Blocker {
        let message = format!("{kind} {name} has no endpoint yet", kind = on.kind, name = on.name);
        new(on, "NoEndpoint", message)
    }
}

/// Builds notes. A note is a message for the user, without any other effect.
pub mod note {
    use crate::json;
    use crate::types::{Note, Severity};
    use alloc::{borrow::ToOwned, string::String};
    use serde_json::Value;

    /// The reason of the notes that [`debug`] returns.
    pub const DEBUG: &str = "Debug";

    /// Returns a note with information for the user.
    pub fn info(reason: &str, message: impl Into<String>) -> Note {
        Note { severity: Severity::Info, reason: reason.to_owned(), message: message.into(), path: None }
    }

    /// Returns a note about something that the user probably did not intend.
    pub fn warning(reason: &str, message: impl Into<String>) -> Note {
        Note { severity: Severity::Warning, reason: reason.to_owned(), message: message.into(), path: None }
    }

    /// Returns a note for the author of the policy. The message is `name = value`, with the value as JSON.
    ///
    /// A policy is pure, so it cannot print a value. Instead, put the value into a note: `kaos-operator render` prints
    /// the note. In a cluster, users see a note only if the policy's `assess` copies the note into the status.
    pub fn debug(name: &str, value: impl Into<Value>) -> Note {
        info(DEBUG, format!("{name} = {}", json::text(&value.into())))
    }

    /// Returns `note` with the path of the field that the note is about.
    pub fn at(path: impl Into<String>, note: Note) -> Note {
        Note { path: Some(path.into()), ..note }
    }
}

/// Builds the conditions of a report.
pub mod condition {
    use crate::types::{Condition, Truth};
    use alloc::{borrow::ToOwned, string::String};

    /// Returns the condition `kind` with the status `True`.
    pub fn yes(kind: &str, reason: &str, message: impl Into<String>) -> Condition {
        new(kind, Truth::Yes, reason, message.into())
    }

    /// Returns the condition `kind` with the status `False`.
    pub fn no(kind: &str, reason: &str, message: impl Into<String>) -> Condition {
        new(kind, Truth::No, reason, message.into())
    }

    /// Returns the condition `kind` with the status `Unknown`.
    pub fn unknown(kind: &str, reason: &str, message: impl Into<String>) -> Condition {
        new(kind, Truth::Unknown, reason, message.into())
    }

    fn new(kind: &str, status: Truth, reason: &str, message: String) -> Condition {
        Condition { type_: kind.to_owned(), status, reason: reason.to_owned(), message }
    }
}

/// Collects violations, so that the user sees all mistakes in an object at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Violations(Vec<Violation>);

impl Violations {
    /// Creates an empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a violation at `path`. `message` tells the user the mistake and how to fix it.
    pub fn add(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.0.push(Violation { path: path.into(), message: message.into() });
    }

    /// If `holds` is false, adds the violation. Returns `holds`.
    pub fn require(&mut self, holds: bool, path: &str, message: &str) -> bool {
        if !holds {
            self.add(path, message);
        }
        holds
    }

    /// Returns the value of `result`. If `result` contains violations, collects them and returns `None`. Returns any
    /// other refusal (waiting, unsupported) as an error, because it does not concern the object's fields.
    pub fn collect<T>(&mut self, result: Result<T, Refusal>) -> Result<Option<T>, Refusal> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Refusal::Invalid(more)) => {
                self.0.extend(more);
                Ok(None)
            }
            Err(other) => Err(other),
        }
    }

    /// Returns whether the collection contains no violations.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a refusal with all violations, unless the collection is empty.
    pub fn into_result(self) -> Result<(), Refusal> {
        if self.0.is_empty() { Ok(()) } else { Err(Refusal::Invalid(self.0)) }
    }
}

impl From<Vec<Violation>> for Violations {
    fn from(violations: Vec<Violation>) -> Self {
        Self(violations)
    }
}

impl FromIterator<Violation> for Violations {
    fn from_iter<I: IntoIterator<Item = Violation>>(violations: I) -> Self {
        Self(violations.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{Violations, blocker, condition, note, refusal};
    use crate::need;
    use crate::types::{Refusal, Severity, Truth};

    #[test]
    fn a_blocker_names_the_object_that_it_waits_for() {
        let on = need::reference("v1", "ConfigMap", "c");
        let missing = blocker::not_found(on.clone());
        assert_eq!((missing.reason.as_str(), missing.message.as_str()), ("NotFound", "ConfigMap c not found"));
        let early = blocker::no_endpoint(on.clone());
        assert_eq!((early.reason.as_str(), early.message.as_str()), ("NoEndpoint", "ConfigMap c has no endpoint yet"));
        assert_eq!(early.on, on);
    }

    #[test]
    fn notes_and_conditions_have_a_severity() {
        let plain = note::info("Reason", "text");
        assert_eq!((&plain.severity, &plain.path), (&Severity::Info, &None));
        let placed = note::at("spec.a", note::warning("Reason", "text"));
        assert_eq!((&placed.severity, placed.path.as_deref()), (&Severity::Warning, Some("spec.a")));
        let debug = note::debug("labels", serde_json::json!({"app": "x"}));
        assert_eq!((debug.reason.as_str(), debug.message.as_str()), (note::DEBUG, r#"labels = {"app":"x"}"#));
        assert_eq!(note::debug("pods", 3).message, "pods = 3");
        assert_eq!(condition::yes("A", "R", "m").status, Truth::Yes);
        assert_eq!(condition::no("A", "R", "m").status, Truth::No);
        assert_eq!(condition::unknown("A", "R", "m").status, Truth::Unknown);
    }

    #[test]
    fn all_errors_are_reported_at_once() {
        let mut wrong = Violations::new();
        assert!(wrong.is_empty() && wrong.require(true, "spec.a", "is fine"));
        assert!(!wrong.require(false, "spec.b", "is required"));
        assert_eq!(wrong.collect(Ok(1)), Ok(Some(1)));
        assert_eq!(wrong.collect::<()>(Err(refusal::invalid("spec.c", "must be text"))), Ok(None));
        let Err(Refusal::Invalid(wrong)) = wrong.into_result() else { panic!("must be refused") };
        let paths: Vec<_> = wrong.iter().map(|violation| violation.path.as_str()).collect();
        assert_eq!(paths, ["spec.b", "spec.c"]);
        assert_eq!(wrong.clone().into_iter().collect::<Violations>(), Violations::from(wrong));
        assert_eq!(Violations::new().into_result(), Ok(()));
    }

    #[test]
    fn a_failure_that_is_not_the_objects_ends_the_checks() {
        let mut wrong = Violations::new();
        let waiting = refusal::waiting(vec![blocker::not_found(need::reference("v1", "ConfigMap", "c"))]);
        assert_eq!(wrong.collect::<()>(Err(waiting.clone())), Err(waiting));
        let unsupported = refusal::unsupported("no");
        assert_eq!(wrong.collect::<()>(Err(unsupported.clone())), Err(unsupported));
        assert!(wrong.is_empty());
    }
}
