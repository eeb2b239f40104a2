//! `-o json`: a list with everything, one entry an object.

use std::io;

use kaos_policy::{
    contract::{Blocker, EnvSource, EnvVar, KeySelector, Note, Reference, Refusal, Violation},
    policy::PolicyId,
    render::{PolicyFailure, Verdict},
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::super::output::Output;
use crate::offline::Entry;

/// Writes entries as they come, so that a long list is never held as text.
#[derive(Debug, Default)]
pub(super) struct List {
    begun: bool,
}

/// One object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    object: Reference,
    policy: &'a PolicyId,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    overlays: &'a [PolicyId],
    fuel: u64,
    env: Vec<Value>,
    manifests: &'a [Value],
    gates: &'a [Blocker],
    refused: Option<Refused>,
    notes: &'a [Note],
    status: &'a Value,
}

/// Why there are no manifests.
#[derive(Debug, Serialize)]
pub(super) struct Refused {
    /// `Invalid`, `Waiting` or `Unsupported` when the policy says so; `Failed` when it did not answer as it must.
    pub(super) reason: &'static str,
    pub(super) messages: Vec<Message>,
}

/// One reason, and the field it is about, or the object that is waited for; an empty path is the object as a whole.
#[derive(Debug, Serialize)]
pub(super) struct Message {
    pub(super) path: String,
    pub(super) message: String,
}

impl Refused {
    pub(super) fn of(refusal: &Refusal) -> Self {
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

impl List {
    pub(super) fn write(&mut self, out: &mut Output, entry: &Entry) -> io::Result<()> {
        out.text(if self.begun { ",\n" } else { "[\n" })?;
        self.begun = true;
        let Entry { rendered, outcome: _, status } = entry;
        let refused = match &rendered.verdict {
            Verdict::Planned(_) => None,
            Verdict::Refused(refusal) => Some(Refused::of(refusal)),
            Verdict::Failed(failure) => Some(Refused::failed(failure)),
        };
        out.json(&Shown {
            object: rendered.object.reference(),
            policy: &rendered.policy,
            overlays: &rendered.overlays,
            fuel: rendered.fuel,
            env: rendered.env().iter().map(variable).collect(),
            manifests: rendered.manifests(),
            gates: rendered.gates(),
            refused,
            notes: rendered.notes(),
            status,
        })
    }

    pub(super) fn finish(self, out: &mut Output) -> io::Result<()> {
        out.text(if self.begun { "]\n" } else { "[]\n" })
    }
}

/// A variable as Kubernetes spells it, with its container and its origin.
fn variable(variable: &EnvVar) -> Value {
    let EnvVar { container, name, source, origin } = variable;
    let mut shown = Map::new();
    shown.insert("container".to_owned(), container.as_str().into());
    shown.insert("name".to_owned(), name.as_str().into());
    match source {
        EnvSource::Literal(value) => shown.insert("value".to_owned(), value.as_str().into()),
        other => shown.insert("valueFrom".to_owned(), value_from(other)),
    };
    shown.insert("origin".to_owned(), origin.as_str().into());
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
        // The guard has parsed it before.
        EnvSource::Other(text) => serde_json::from_str(text).unwrap_or_else(|_| text.as_str().into()),
    }
}
