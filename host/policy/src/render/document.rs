//! Shows a rendered object as one document, for `render -o json` and the operator's `explain`.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Explained, PolicyFailure, Rendered, Verdict};
use crate::{
    contract::{Blocker, EnvSource, EnvVar, KeySelector, Note, Reference, Refusal, Violation},
    policy::PolicyId,
};

/// The document that shows one rendered object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Document<'a> {
    object: Reference,
    policy: &'a PolicyId,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    overlays: &'a [PolicyId],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    amended: Vec<AmendedChildren<'a>>,
    fuel: u64,
    env: Vec<Value>,
    manifests: &'a [Value],
    origins: Vec<Explained>,
    gates: &'a [Blocker],
    refused: Option<Refused>,
    notes: &'a [Note],
    status: &'a Value,
}

/// The children that an overlay changed or added.
#[derive(Debug, Serialize)]
struct AmendedChildren<'a> {
    overlay: &'a PolicyId,
    children: &'a [Reference],
}

/// The reason why an object has no manifests.
#[derive(Debug, Serialize)]
pub struct Refused {
    /// `Invalid`, `Waiting` or `Unsupported` if the policy refused. `Failed` if the policy failed.
    pub reason: &'static str,
    /// The messages, one for each problem.
    pub messages: Vec<Message>,
}

/// A message about one problem.
#[derive(Debug, Serialize)]
pub struct Message {
    /// The field with the problem, or the object that the policy waits for. Empty if the problem concerns the whole
    /// object.
    pub path: String,
    /// The problem and the remedy.
    pub message: String,
}

impl Refused {
    /// Converts a policy's refusal to the form in the document.
    pub fn of(refusal: &Refusal) -> Self {
        let message = |path: String, message: &str| Message { path, message: message.to_owned() };
        let messages = match refusal {
            Refusal::Invalid(violations) => {
                violations.iter().map(|Violation { path, message: text }| message(path.clone(), text)).collect()
            }
            Refusal::Waiting(blockers) => {
                blockers.iter().map(|blocker| message(blocker.on.to_string(), &blocker.message)).collect()
            }
            Refusal::Unsupported(text) => vec![message(String::new(), text)],
        };
        Self { reason: refusal.reason(), messages }
    }

    fn failed(failure: &PolicyFailure) -> Self {
        Self { reason: "Failed", messages: vec![Message { path: String::new(), message: failure.to_string() }] }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason)?;
        for (number, message) in self.messages.iter().enumerate() {
            write!(f, "{}{message}", if number == 0 { ": " } else { "; " })?;
        }
        Ok(())
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, message } = self;
        if path.is_empty() { f.write_str(message) } else { write!(f, "{path}: {message}") }
    }
}

impl Rendered {
    /// Builds the document. `is_gated` says whether the plan gates still hold back the first apply. If `is_gated` is
    /// false, the document contains no plan gates.
    pub fn document<'a>(&'a self, is_gated: bool, status: &'a Value) -> Document<'a> {
        Document {
            object: self.object.reference(),
            policy: &self.policy,
            overlays: &self.overlays,
            amended: self.amended().map(|(overlay, children)| AmendedChildren { overlay, children }).collect(),
            fuel: self.fuel,
            env: self.env().iter().map(variable).collect(),
            manifests: self.manifests(),
            origins: self.explained(),
            gates: if is_gated { self.gates() } else { &[] },
            refused: match &self.verdict {
                Verdict::Planned(_) => None,
                Verdict::Refused(refusal) => Some(Refused::of(refusal)),
                Verdict::Failed(failure) => Some(Refused::failed(failure)),
            },
            notes: self.notes(),
            status,
        }
    }
}

impl EnvVar {
    /// Returns the variable as an entry of a container's `env`.
    pub(crate) fn in_pod(&self) -> Map<String, Value> {
        let mut entry = Map::new();
        entry.insert("name".to_owned(), self.name.as_str().into());
        match &self.source {
            EnvSource::Literal(value) => entry.insert("value".to_owned(), value.as_str().into()),
            other => entry.insert("valueFrom".to_owned(), value_from(other)),
        };
        entry
    }
}

/// Returns a variable as an entry of a container's `env`, with two more fields for the name of the container and the
/// origin.
fn variable(variable: &EnvVar) -> Value {
    let mut shown = variable.in_pod();
    shown.insert("container".to_owned(), variable.container.as_str().into());
    shown.insert("origin".to_owned(), variable.origin.as_str().into());
    Value::Object(shown)
}

fn value_from(source: &EnvSource) -> Value {
    let selector = |KeySelector { name, key, optional }: &KeySelector| match optional {
        true => json!({"name": name, "key": key, "optional": true}),
        false => json!({"name": name, "key": key}),
    };
    match source {
        EnvSource::Literal(_) => Value::Null,
        EnvSource::SecretKey(from) => json!({"secretKeyRef": selector(from)}),
        EnvSource::ConfigMapKey(from) => json!({"configMapKeyRef": selector(from)}),
        EnvSource::FieldPath(path) => json!({"fieldRef": {"fieldPath": path}}),
        // The guard has already parsed this text, so the parser never fails here.
        EnvSource::Other(text) => serde_json::from_str(text).unwrap_or_else(|_| text.as_str().into()),
    }
}
