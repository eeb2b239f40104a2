//! Repeats the pass of a case: with the recorded policies, or with a candidate that replaces one of them.

use std::{collections::BTreeSet, sync::Arc};

use kaos_policy::{
    code::World,
    contract::{Refusal, ResourceType, Target},
    manifest::{OnRefusal, PolicyFile},
    policy::Policy,
    render::Repeated,
    settings::{Effective, Layer, Origin},
};
use serde_json::Value;

use super::{
    answered::answer_of,
    known_code::{KnownCode, ReplayError},
    mask::masked_as,
    sides::{said, side},
};
use crate::{
    catalogue::REFUSES,
    plan::{Around, Difference, Said, difference_of},
    record::{Case, CaseAnswer, CaseVerdict, PolicySource},
};

/// A candidate that replaces a recorded policy.
pub struct Proposed {
    /// The policy.
    pub policy: Arc<Policy>,
    /// Its `policy.yaml`.
    pub file: PolicyFile,
}

/// Repeats passes.
pub struct Replayer<'a> {
    code: KnownCode<'a>,
    candidate: Option<Proposed>,
}

/// The result of a repeated pass.
#[derive(Debug)]
pub struct Replayed {
    /// The answer of the repeated pass.
    pub answer: CaseAnswer,
    /// Whether the answer and its fuel are the same as in the case.
    pub is_same: bool,
    /// The difference between the recorded answer and the answer that the operator would use after the repeated pass.
    pub difference: Difference,
    /// The objects that the policies need now, but that the case does not contain. If there are any, the answer may be
    /// wrong.
    pub unknown: BTreeSet<Target>,
}

type Layers = Vec<(Arc<Policy>, Arc<Effective>)>;

impl<'a> Replayer<'a> {
    /// Creates a replayer. A candidate replaces the recorded policy of the same name. If no recorded policy has this
    /// name, a candidate that is an overlay becomes the highest layer, and any other candidate replaces the lowest
    /// layer.
    pub fn new(code: KnownCode<'a>, candidate: Option<Proposed>) -> Self {
        Self { code, candidate }
    }

    /// Repeats the pass of a case. Returns `None` if the candidate does not claim the object's kind.
    pub fn replay(&self, case: &Case) -> Result<Option<Replayed>, ReplayError> {
        if let Some(why) = &case.incomplete {
            return Err(ReplayError::Incomplete(why.clone()));
        }
        let layers = match &self.candidate {
            None => self.recorded(case)?,
            Some(candidate) => match self.with(candidate, case)? {
                Some(layers) => layers,
                None => return Ok(None),
            },
        };
        let Some(repeated) = case.inputs.repeat(layers) else {
            return Err(ReplayError::Incomplete("it has no policy".to_owned()));
        };
        let repeated = repeated?;
        let CaseAnswer { verdict, fuel, .. } = answer_of(case, &repeated);
        let answer = CaseAnswer::new(masked_as(verdict, case), fuel);
        let Repeated { rendered, unknown, .. } = repeated;
        let is_same = unknown.is_empty() && (answer.digest, answer.fuel) == (case.answer.digest, case.answer.fuel);
        let recorded: Vec<_> = case.inputs.layers.iter().map(|layer| layer.policy.clone()).collect();
        let policies: Vec<_> = std::iter::once(&rendered.policy).chain(&rendered.overlays).cloned().collect();
        let falls_back = self.falls_back(&answer.verdict) && matches!(case.answer.verdict, CaseVerdict::Planned(_));
        let after = if falls_back { side(&case.answer, &recorded) } else { side(&answer, &policies) };
        let newest = [newest_of(case), falls_back.then(|| said(&answer.verdict))];
        let sides = [side(&case.answer, &recorded), after];
        let settings = case.inputs.layers.iter().map(|layer| &layer.settings.values).collect();
        let around = Around { live: &|_| None, exists: &|_| None, settings };
        let difference = difference_of(&case.inputs.object, &sides, newest, &around);
        Ok(Some(Replayed { answer, is_same, difference, unknown }))
    }

    /// Returns the recorded layers.
    fn recorded(&self, case: &Case) -> Result<Layers, ReplayError> {
        let sources = case.policies.iter().map(Some).chain(std::iter::repeat(None));
        let layers = case
            .inputs
            .layers
            .iter()
            .zip(sources)
            .map(|(layer, source)| Ok((self.code.policy(layer, source)?, Arc::new(layer.settings.effective()))));
        layers.collect()
    }

    /// Returns the recorded layers, with the candidate in its place. Returns `None` if the candidate does not claim the
    /// object's kind.
    fn with(&self, candidate: &Proposed, case: &Case) -> Result<Option<Layers>, ReplayError> {
        let Proposed { policy, file } = candidate;
        if policy.claim(&ResourceType::of_object(&case.inputs.object)).is_none() {
            return Ok(None);
        }
        let name = &policy.id().name;
        let named = case.inputs.layers.iter().position(|layer| layer.policy.name == *name);
        let at = named.unwrap_or(if policy.world() == World::Policy { 0 } else { case.inputs.layers.len() });
        let mut layers = Vec::new();
        for (number, layer) in case.inputs.layers.iter().enumerate() {
            let source = case.policies.get(number);
            if number == at {
                let settings = named.map(|_| layer.settings.layers(name)).unwrap_or_default();
                layers.push((Arc::clone(policy), bound(policy, file, settings, source)?));
            } else {
                layers.push((self.code.policy(layer, source)?, Arc::new(layer.settings.effective())));
            }
        }
        if at == case.inputs.layers.len() {
            layers.push((Arc::clone(policy), bound(policy, file, Vec::new(), None)?));
        }
        Ok(Some(layers))
    }

    /// Returns whether this verdict of the candidate would make the operator ask the predecessor.
    fn falls_back(&self, verdict: &CaseVerdict) -> bool {
        let Some(Proposed { file, .. }) = &self.candidate else { return false };
        match verdict {
            CaseVerdict::Planned(_) | CaseVerdict::Refused(Refusal::Waiting(_)) => false,
            CaseVerdict::Failed(_) => true,
            CaseVerdict::Refused(_) => file.on_refusal != OnRefusal::Tell,
        }
    }
}

/// Binds the candidate to the recorded settings. The settings in the candidate's `policy.yaml` replace those in the
/// `policy.yaml` of the recorded policy's package.
fn bound(
    policy: &Policy,
    file: &PolicyFile,
    recorded: Vec<Layer>,
    source: Option<&PolicySource>,
) -> Result<Arc<Effective>, ReplayError> {
    let package = source.and_then(|source| source.package.clone());
    let mut layers: Vec<Layer> = recorded.into_iter().filter(|layer| Some(&layer.origin) != package.as_ref()).collect();
    if file.settings != Value::Null {
        let origin = package.unwrap_or_else(|| Origin::ClusterPolicy("policy.yaml of the candidate".to_owned()));
        layers.push(Layer::tree(origin, &policy.id().name, file.settings.clone()));
    }
    Ok(policy.settings(&layers)?)
}

/// Returns the recorded failure or refusal of the newest policies, if a fallback answered instead.
fn newest_of(case: &Case) -> Option<Said> {
    let newest = case.passed_over.first()?;
    Some(match newest.how.strip_prefix(REFUSES) {
        Some(why) => Said::Refused("Invalid".to_owned(), vec![why.to_owned()]),
        None => Said::Failed(newest.how.clone()),
    })
}
