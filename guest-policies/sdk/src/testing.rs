//! Helpers for short tests of policies. The shipped component does not contain these helpers.

mod allowed;
mod defaults;
mod look_up;
mod recorded;
#[cfg(test)]
mod tests;

pub use defaults::defaults;
pub use recorded::assert_recorded_plans;

use crate::types::{
    Answer, Blocker, Child, Claim, Cluster, EnvSource, EnvVar, Found, Need, Note, Observation, Outcome, Plan,
    Reference, Refusal, SecretFacts, Subject,
};
use crate::{Object, Overlay, Policy, contract, json, need};
use look_up::World;
use serde_json::Value;

/// The reason in the answer `forbidden`, which an operator without `--watch-secrets` gives to each need for a Secret.
const NO_SECRETS: &str = "the operator does not look at Secrets: start the operator with --watch-secrets";

/// Builds a [`Subject`].
#[derive(Clone, Debug)]
pub struct SubjectBuilder {
    subject: contract::Subject,
    no_secrets: bool,
}

/// Starts a subject for `object`. The subject has no settings, no found objects, the domain `cluster.local`, and the
/// operator namespace `kaos-system`.
pub fn subject(object: &Value) -> SubjectBuilder {
    let subject = contract::Subject {
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
    };
    SubjectBuilder { subject, no_secrets: false }
}

impl SubjectBuilder {
    /// Sets the effective settings.
    #[must_use]
    pub fn settings(mut self, settings: &Value) -> Self {
        self.subject.settings = json::text(settings);
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
        self.subject.found.push(Found { id: id.to_owned(), answer });
        self
    }

    /// Marks the object as applied, as if the host had once applied all children of its plan.
    #[must_use]
    pub fn applied(mut self) -> Self {
        self.subject.applied = true;
        self
    }

    /// Marks an optional type of the claim as served by the cluster.
    #[must_use]
    pub fn serves(mut self, api_version: &str, kind: &str) -> Self {
        self.subject.cluster.served.push(need::resource_type(api_version, kind));
        self
    }

    /// Sets the cluster's DNS domain.
    #[must_use]
    pub fn domain(mut self, domain: &str) -> Self {
        domain.clone_into(&mut self.subject.cluster.domain);
        self
    }

    /// Fills in the defaults of a settings schema, as the host does. A setting that the test has set keeps its value.
    #[must_use]
    pub fn defaults(mut self, schema: &str) -> Self {
        let mut settings = serde_json::from_str(&self.subject.settings).unwrap_or_default();
        defaults::fill(&mut settings, &defaults(schema));
        self.subject.settings = json::text(&settings);
        self
    }

    /// Simulates an operator that does not look at Secrets: later calls of [`beside`](Self::beside) and
    /// [`beside_overlay`](Self::beside_overlay) answer each need for a Secret with `forbidden`.
    #[must_use]
    pub fn no_secrets(mut self) -> Self {
        self.no_secrets = true;
        self
    }

    /// Answers the needs of `P` from the objects in `beside`, in rounds, as the host does. The policy sees only the
    /// fields that a need names. Keeps the answers that the test already gave.
    ///
    /// If an object of a namespaced type has no namespace, it is in the namespace of the subject's object. A type that
    /// is neither built in nor claimed is cluster-scoped if none of its objects has a namespace. This function does not
    /// check grants: the gate checks grants when it evaluates samples.
    ///
    /// # Panics
    ///
    /// Fails the test if the host would refuse a need, for example because:
    ///
    /// - the claim does not list the type of the need in `reads`
    /// - a field, the name, the namespace or a label of the need is invalid
    /// - the policy has more than 256 needs, or still has new needs in the last round
    #[must_use]
    pub fn beside<P: Policy>(self, beside: &[Value]) -> Self {
        let claims = P::describe().claims;
        self.answered(&claims, P::needs, beside)
    }

    /// Like [`beside`](Self::beside), but for the needs of an overlay.
    ///
    /// # Panics
    ///
    /// Fails the test if the host would refuse a need.
    #[must_use]
    pub fn beside_overlay<O: Overlay>(self, beside: &[Value]) -> Self {
        let claims = O::describe().claims;
        self.answered(&claims, O::needs, beside)
    }

    fn answered(mut self, claims: &[Claim], needs: impl Fn(&Subject) -> Vec<Need>, beside: &[Value]) -> Self {
        let no_secrets = self.no_secrets.then_some(NO_SECRETS);
        World::new(beside, no_secrets).answer(&mut self.subject, claims, needs);
        self
    }

    /// Returns the subject.
    pub fn build(self) -> Subject {
        self.subject.into()
    }
}

/// Returns the plan of `P` for `subject`. First computes the mapping.
pub fn plan<P: Policy>(subject: &Subject) -> Result<Plan, Refusal> {
    P::translate(subject, P::map_env(subject, Vec::new())?)
}

/// Returns the plan of `P` with the overlay `O` over it. Calls the functions in the order of the host: `map_env` of `P`
/// and of `O`, `translate`, `amend`. `above` is the subject of the overlay, with its own settings and found objects.
pub fn overlaid<P: Policy, O: Overlay>(subject: &Subject, above: &Subject) -> Result<Plan, Refusal> {
    let env = O::map_env(above, P::map_env(subject, Vec::new())?)?;
    O::amend(above, P::translate(subject, env)?)
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
