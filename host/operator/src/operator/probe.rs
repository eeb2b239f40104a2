//! Shows the state of a running operator.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use kaos_policy::{
    contract::ResourceType,
    policy::Policy,
    render::{DecisionId, DecisionIdError, LayerInputs},
};
use serde_json::{Value, json};

use crate::{
    catalogue::Snapshot,
    kinds,
    queue::Queue,
    reconcile::{Context, PolicyRunner, explain},
    record::Case,
    replay::masked,
    watch::ObjectKey,
};

/// The maximum number of namespaces in a message about policies that the operator still loads.
const NAMED: usize = 16;

/// Shows the state of an operator. All clones show the state of the same operator.
#[derive(Clone)]
pub struct Probe {
    context: Arc<Context>,
    queue: Queue,
}

impl Probe {
    pub(super) fn new(context: Arc<Context>, queue: Queue) -> Self {
        Self { context, queue }
    }

    /// Checks that every kind is watched and that every policy is loaded. The error lists the kinds that are not
    /// watched yet and the policies that are not loaded yet.
    pub fn ready(&self) -> Result<(), Vec<String>> {
        let Some(snapshot) = self.context.runner.catalogue.load() else {
            return Err(vec![self.context.runner.catalogue.missing().unwrap_or_default()]);
        };
        let coverage = self.context.access.watch.coverage();
        let unwatched = snapshot.kinds().filter(|(of, _)| !coverage.is_primary(of));
        let unwatched: Vec<String> = unwatched.map(|(of, _)| format!("{of}: not watched yet")).collect();
        if unwatched.is_empty() { self.context.access.watch.follows_all() } else { Err(unwatched) }
    }

    /// Returns whether the watches of this process, which may still wait for the Lease, follow all their types.
    pub fn is_warm(&self) -> bool {
        self.context.access.watch.follows_all().is_ok()
    }

    /// Returns the first kinds and namespaces whose policies the operator still loads, at most 16. Readiness does not
    /// wait for them.
    pub fn loading(&self) -> Vec<String> {
        let Some(snapshot) = self.context.runner.catalogue.load() else { return Vec::new() };
        let places = snapshot
            .loading()
            .iter()
            .flat_map(|(of, namespaces)| namespaces.keys().map(move |namespace| format!("{of} in {namespace}")));
        places.take(NAMED).collect()
    }

    /// Returns the namespaces in the operator's list of namespaces in which the operator has no right to read.
    /// Readiness does not wait for these namespaces.
    pub fn barred(&self) -> BTreeSet<String> {
        self.context.access.watch.barred()
    }

    /// Returns the number of objects that wait for rights that the operator lacks.
    pub fn denied(&self) -> usize {
        self.context.access.watch.denied()
    }

    /// Returns the record of the last pass over an object: what the pass saw, planned and decided. An error contains
    /// the reason why the operator has no record. The parameter `kind` accepts a kind, its plural, its singular or a
    /// short name.
    pub async fn explain(&self, kind: &str, namespace: &str, name: &str) -> Result<Value, String> {
        let unknown = || format!("the operator has no record of {kind} {namespace}/{name}");
        let snapshot = self.context.runner.catalogue.load().ok_or_else(unknown)?;
        let key = ObjectKey::new(self.kind(&snapshot, kind)?, namespace, name);
        let mut answer = explain(&self.context.runner, &key).await.ok_or_else(unknown)?;
        answer["object"] = json!(key.reference());
        Ok(answer)
    }

    /// Returns the list of the decisions in the flight recorder, the oldest first.
    pub fn decisions(&self) -> Value {
        let PolicyRunner { recorder, clock, .. } = &self.context.runner;
        json!(recorder.list(clock.now(), |_| true))
    }

    /// Returns the list of the decisions about one object, the oldest first. The parameter `kind` accepts the same
    /// words as in [`explain`](Self::explain).
    pub fn decisions_of(&self, kind: &str, namespace: &str, name: &str) -> Result<Value, String> {
        let PolicyRunner { catalogue, recorder, clock, .. } = &self.context.runner;
        let snapshot = catalogue.load().ok_or_else(|| "the operator has no policies yet".to_owned())?;
        let of = self.kind(&snapshot, kind)?;
        Ok(json!(recorder.list_of(clock.now(), (&of, namespace, name))))
    }

    /// Returns the kind that a word names.
    fn kind(&self, snapshot: &Snapshot, word: &str) -> Result<ResourceType, String> {
        let kinds = snapshot.kinds().map(|(of, _)| of);
        let meant = kinds::meant(word, kinds, |of| self.context.access.watch.served(of));
        meant.cloned().map_err(|error| error.to_string())
    }

    /// Returns a decision in the flight recorder as a case, with masks instead of secret values.
    pub async fn decision(&self, id: &str) -> Result<Value, String> {
        let id: DecisionId = id.parse().map_err(|error: DecisionIdError| error.to_string())?;
        let runner = &self.context.runner;
        let unknown = || {
            format!(
                "the flight recorder has no decision {id}: it drops old decisions, and decisions beyond its size limit"
            )
        };
        let case = runner.recorder.case(id, runner.clock.now()).ok_or_else(unknown)?;
        let kind = runner.catalogue.load().and_then(|snapshot| snapshot.answer_for(&case.inputs.object).kind());
        let known: Vec<Arc<Policy>> = kind.iter().flat_map(|kind| kind.policies_ever()).cloned().collect();
        let mask = move || {
            // Not only the id of the policy must be equal: masking runs the policy again, with its grants and limits.
            let find = |layer: &LayerInputs| {
                let is_it = |policy: &&Arc<Policy>| {
                    *policy.id() == layer.policy && *policy.grants() == layer.grants && *policy.limits() == layer.limits
                };
                known.iter().find(is_it).cloned()
            };
            // Keep the id of the decision, although it depends on the masked values: it also depends on the secret key
            // of this process, so nobody can test guesses of a masked value with it.
            let decision = case.decision;
            json!(Case { decision, ..masked(case, &find) })
        };
        Ok(runner.compute(false, mask).await)
    }

    /// Returns the number of objects that wait for a pass, and how long the first of these objects has waited.
    pub fn queue(&self) -> (usize, Duration) {
        (self.queue.depth(), self.queue.oldest_age())
    }
}
