//! Helpers for short tests of policies. The shipped component does not contain these helpers.

mod recorded;
#[cfg(test)]
mod tests;

pub use recorded::{assert_recorded_plans, defaults};

use crate::types::{
    Answer, Blocker, Child, Cluster, EnvSource, EnvVar, Found, Need, Note, Observation, Outcome, Plan, Reference,
    Refusal, SecretFacts, Selector, Subject, Target,
};
use crate::{Object, Policy, contract, json, need};
use kaos_fields::Fields;
use serde_json::Value;
use std::collections::BTreeSet;

/// Builds a [`Subject`].
#[derive(Clone, Debug)]
pub struct SubjectBuilder(contract::Subject);

/// Starts a subject for `object`. The subject has no settings, no found objects, the domain `cluster.local`, and the
/// operator namespace `kaos-system`.
pub fn subject(object: &Value) -> SubjectBuilder {
    SubjectBuilder(contract::Subject {
        object: json::text(object),
        found: Vec::new(),
        settings: json::empty(),
        cluster: Cluster {
            domain: "cluster.local".to_owned(),
            operator_namespace: "kaos-system".to_owned(),
            served: Vec::new(),
        },
        applied: false,
        extra: json::empty(),
    })
}

impl SubjectBuilder {
    /// Sets the effective settings.
    #[must_use]
    pub fn settings(mut self, settings: &Value) -> Self {
        self.0.settings = json::text(settings);
        self
    }

    /// Answers need `id` with these objects. An empty list means that the object is absent.
    #[must_use]
    pub fn found(self, id: &str, objects: &[Value]) -> Self {
        self.answer(id, Answer::Objects(objects.iter().map(json::text).collect()))
    }

    /// Answers need `id` with a Secret that has these keys.
    #[must_use]
    pub fn secret(self, id: &str, keys: &[&str]) -> Self {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        self.answer(id, Answer::Secret(SecretFacts { present: true, keys, digest: "digest".to_owned() }))
    }

    /// Answers need `id` with `answer`.
    #[must_use]
    pub fn answer(mut self, id: &str, answer: Answer) -> Self {
        self.0.found.push(Found { id: id.to_owned(), answer });
        self
    }

    /// Marks the object as applied, as if the host had applied a plan of the object in full once.
    #[must_use]
    pub fn applied(mut self) -> Self {
        self.0.applied = true;
        self
    }

    /// Marks an optional type of the claim as served by the cluster.
    #[must_use]
    pub fn serves(mut self, api_version: &str, kind: &str) -> Self {
        self.0.cluster.served.push(need::resource_type(api_version, kind));
        self
    }

    /// Sets the cluster's DNS domain.
    #[must_use]
    pub fn domain(mut self, domain: &str) -> Self {
        domain.clone_into(&mut self.0.cluster.domain);
        self
    }

    /// Answers the needs of `P` from the objects in `beside`, in rounds, as the host does. The policy sees only the
    /// fields that a need names.
    ///
    /// # Panics
    ///
    /// Fails the test if the host would refuse the fields of a need.
    #[must_use]
    pub fn beside<P: Policy>(mut self, beside: &[Value]) -> Self {
        let objects: Vec<Object> = beside.iter().cloned().map(Object::new).collect();
        let namespace = Object::parse(&self.0.object).namespace().to_owned();
        for _ in 0..5 {
            let mut found: Vec<Found> = P::needs(&self.0.clone().into())
                .into_iter()
                .map(|need| Found { answer: look_up(&need, &objects, &namespace), id: need.id })
                .collect();
            found.sort_by(|a, b| a.id.cmp(&b.id));
            if found == self.0.found {
                break;
            }
            self.0.found = found;
        }
        self
    }

    /// Returns the subject.
    pub fn build(self) -> Subject {
        self.0.into()
    }
}

#[allow(clippy::panic, reason = "a test with an invalid need has failed")]
fn look_up(need: &Need, objects: &[Object], namespace: &str) -> Answer {
    let Need { id, target, fields, .. } = need;
    let fields = Fields::parse(fields).unwrap_or_else(|error| panic!("need {id}: {error}"));
    let matches = |object: &&Object| match target {
        Target::Named(wanted) => {
            is(object, &wanted.api_version, &wanted.kind)
                && object.name() == wanted.name
                && lives_in(object, wanted.namespace.as_deref(), namespace)
        }
        Target::Labelled(wanted) => {
            is(object, &wanted.of.api_version, &wanted.of.kind)
                && wanted.labels.iter().all(|(key, value)| object.label(key) == Some(value))
                && lives_in(object, wanted.namespace.as_deref(), namespace)
        }
    };
    let mut found = objects.iter().filter(matches);
    let of_secrets = |api_version: &str, kind: &str| api_version == "v1" && kind == "Secret";
    if let Target::Labelled(Selector { of, .. }) = target
        && of_secrets(&of.api_version, &of.kind)
    {
        return Answer::Forbidden("Secrets are read by name, never by label".to_owned());
    }
    if let Target::Named(Reference { api_version, kind, .. }) = target
        && of_secrets(api_version, kind)
    {
        assert!(fields.is_whole(), "need {id}: a need for a Secret has no fields");
        let secret = found.next();
        let data = ["data", "stringData"].into_iter().filter_map(|field| secret?.at(&[field])?.as_object());
        let keys: BTreeSet<String> = data.flat_map(|map| map.keys().cloned()).collect();
        let keys = keys.into_iter().collect();
        return Answer::Secret(SecretFacts { present: secret.is_some(), keys, digest: "digest".to_owned() });
    }
    Answer::Objects(found.map(|object| json::text(&fields.of(object.value()))).collect())
}

fn is(object: &Object, api_version: &str, kind: &str) -> bool {
    object.api_version() == api_version && object.kind() == kind
}

/// Returns whether an object is in the namespace `asked`. If a need names no namespace, `primary` replaces `asked`: the
/// namespace of the object for which the policy answers. An object without a namespace matches every namespace, because
/// `kubectl apply` would put the object into the current namespace.
fn lives_in(object: &Object, asked: Option<&str>, primary: &str) -> bool {
    let wanted = asked.unwrap_or(primary);
    wanted.is_empty() || object.namespace().is_empty() || object.namespace() == wanted
}

/// Returns the plan of `P` for `subject`. First computes the mapping.
pub fn plan<P: Policy>(subject: &Subject) -> Result<Plan, Refusal> {
    P::translate(subject, P::map_env(subject, Vec::new())?)
}

/// Returns the manifests of `plan`.
pub fn manifests(plan: &Plan) -> Vec<Object> {
    plan.manifests.iter().map(|text| Object::parse(text)).collect()
}

/// Returns the only manifest of `kind` in `plan`.
///
/// # Panics
///
/// Fails the test if `plan` has no such manifest, or more than one.
#[allow(clippy::panic, reason = "a test that lacks a manifest has failed")]
pub fn manifest(plan: &Plan, kind: &str) -> Object {
    let mut found = manifests(plan).into_iter().filter(|manifest| manifest.kind() == kind);
    match (found.next(), found.next()) {
        (Some(manifest), None) => manifest,
        (None, _) => panic!("the plan has no {kind}"),
        (Some(_), Some(_)) => panic!("the plan has more than one {kind}"),
    }
}

/// Builds an [`Observation`].
#[derive(Clone, Debug)]
pub struct ObservationBuilder(Observation);

/// Starts an observation without children, for a pass with this `outcome`.
pub fn observation(outcome: Outcome) -> ObservationBuilder {
    ObservationBuilder(Observation {
        outcome,
        children: Vec::new(),
        gates: Vec::new(),
        env: Vec::new(),
        notes: Vec::new(),
        extra: json::empty(),
    })
}

impl ObservationBuilder {
    /// Adds a live child.
    #[must_use]
    pub fn child(mut self, live: &Value) -> Self {
        let object = Object::new(live.clone());
        let identity = need::reference(object.api_version(), object.kind(), object.name());
        self.0.children.push(Child { identity, live: Some(json::text(live)) });
        self
    }

    /// Adds a planned child that does not exist.
    #[must_use]
    pub fn missing(mut self, identity: Reference) -> Self {
        self.0.children.push(Child { identity, live: None });
        self
    }

    /// Adds the gates, the mapping and the notes of `plan`.
    #[must_use]
    pub fn plan(mut self, plan: &Plan) -> Self {
        self.0.gates.clone_from(&plan.gates);
        self.0.env.clone_from(&plan.env);
        self.0.notes.clone_from(&plan.notes);
        self
    }

    /// Adds one gate.
    #[must_use]
    pub fn gate(mut self, gate: Blocker) -> Self {
        self.0.gates.push(gate);
        self
    }

    /// Adds one note.
    #[must_use]
    pub fn note(mut self, note: Note) -> Self {
        self.0.notes.push(note);
        self
    }

    /// Returns the observation.
    pub fn build(self) -> Observation {
        self.0
    }
}

/// Returns the literal value of the variable `name` in `container`. Returns `None` if the variable has no literal
/// value.
pub fn env_value<'a>(env: &'a [EnvVar], container: &str, name: &str) -> Option<&'a str> {
    env.iter().find(|var| var.container == container && var.name == name).and_then(|var| match &var.source {
        EnvSource::Literal(value) => Some(value.as_str()),
        _ => None,
    })
}
