//! The result of rendering one object.

use std::sync::Arc;

use serde_json::Value;

use super::{DecisionId, DecisionKey, ObjectRef, Planned, PolicyFailure, Verdict};
use crate::{
    contract::{Blocker, Child, EnvVar, Found, Need, Note, Outcome, Reference, Refusal, Subject},
    digest::Digest,
    policy::PolicyId,
    settings::Effective,
};

/// The result of rendering one object.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// The object.
    pub object: ObjectRef,
    /// The policy at the bottom of the stack, which is not an overlay.
    pub policy: PolicyId,
    /// The overlays over the policy, the lowest first.
    pub overlays: Vec<PolicyId>,
    /// The fuel of all layers together. The same input takes the same fuel on every machine.
    pub fuel: u64,
    /// The needs whose targets the policies are allowed to see. The target of each need has a namespace, and the id of
    /// each need begins with the layer's name. The operator watches these needs after every verdict.
    pub needs: Vec<Need>,
    /// The settings of each layer, the lowest layer first.
    pub settings: Vec<Arc<Effective>>,
    /// The digest of all inputs of the pass, except the found objects. See [`super::Renderer::inputs_digest`].
    pub inputs: Digest,
    /// The verdict of the pass.
    pub verdict: Verdict,
    /// The number of the layer that answered last.
    pub(super) last_asked: usize,
    pub(super) subject: Arc<Subject>,
    /// The objects that each overlay found, the lowest overlay first.
    pub(super) overlay_found: Arc<[Vec<Found>]>,
    pub(super) decision: DecisionId,
    pub(super) decision_key: DecisionKey,
    pub(super) is_whole: bool,
    pub(super) recalled: bool,
    /// The number of steps for checking the settings in the object's annotations. A step takes about 0.2 µs.
    pub(crate) steps: usize,
}

impl Rendered {
    /// Returns the plan, or `None` if the policies did not return a plan.
    pub fn planned(&self) -> Option<&Planned> {
        match &self.verdict {
            Verdict::Planned(planned) => Some(planned),
            Verdict::Refused(_) | Verdict::Failed(_) => None,
        }
    }

    /// Returns the manifests; empty if there is no plan.
    pub fn manifests(&self) -> &[Value] {
        self.planned().map_or(&[], |planned| &planned.manifests)
    }

    /// Returns the plan gates; empty if there is no plan.
    pub fn gates(&self) -> &[Blocker] {
        self.planned().map_or(&[], |planned| &planned.gates)
    }

    /// Returns the mapping; empty if there is no plan.
    pub fn env(&self) -> &[EnvVar] {
        self.planned().map_or(&[], |planned| &planned.env)
    }

    /// Returns the layer that set a variable: its policy and its settings.
    pub fn giver(&self, EnvVar { container, name, .. }: &EnvVar) -> Option<(&PolicyId, &Effective)> {
        let key = (container.clone(), name.clone());
        let at = self.planned().and_then(|planned| planned.overlaid.get(&key)).copied().unwrap_or_default();
        let policy = std::iter::once(&self.policy).chain(&self.overlays).nth(at)?;
        Some((policy, self.settings.get(at)?))
    }

    /// Returns the subject of an overlay. 0 is the lowest overlay. The field `cluster.served` has the value for the
    /// policy below the overlays, and not the value for this overlay.
    pub(crate) fn subject_of_overlay(&self, at: usize) -> Option<Subject> {
        let settings = self.settings.get(at + 1)?.text().to_owned();
        let found = self.overlay_found.get(at)?.clone();
        Some(Subject { found, settings, ..(*self.subject).clone() })
    }

    /// Returns the notes; empty if there is no plan.
    pub fn notes(&self) -> &[Note] {
        self.planned().map_or(&[], |planned| &planned.notes)
    }

    /// Returns the refusal, or `None` if no policy refused the object.
    pub fn refused(&self) -> Option<&Refusal> {
        match &self.verdict {
            Verdict::Refused(refusal) => Some(refusal),
            Verdict::Planned(_) | Verdict::Failed(_) => None,
        }
    }

    /// Returns the policy or the overlay that refused. The result has a meaning only if the verdict is a refusal.
    pub fn refusing(&self) -> &PolicyId {
        std::iter::once(&self.policy).chain(&self.overlays).nth(self.last_asked).unwrap_or(&self.policy)
    }

    /// Returns the highest overlay that changed or added this child, or the policy if no overlay did.
    pub fn author(&self, child: &Reference) -> &PolicyId {
        let is_it = |other: &Reference| other.of() == child.of() && other.name == child.name;
        let overlays = self.amended().filter(|(_, children)| children.iter().any(is_it));
        overlays.last().map_or(&self.policy, |(overlay, _)| overlay)
    }

    /// Returns the overlays that changed or added children, each with these children.
    pub fn amended(&self) -> impl Iterator<Item = (&PolicyId, &[Reference])> {
        let amended = self.planned().map_or(&[][..], |planned| planned.amended.as_slice());
        let some = self.overlays.iter().zip(amended).filter(|(_, children)| !children.is_empty());
        some.map(|(overlay, children)| (overlay, children.as_slice()))
    }

    /// Returns the failure, if there is one.
    pub fn failed(&self) -> Option<&PolicyFailure> {
        match &self.verdict {
            Verdict::Failed(failure) => Some(failure),
            Verdict::Planned(_) | Verdict::Refused(_) => None,
        }
    }

    /// Returns the subject that the policy at the bottom of the stack received.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Returns the id of the decision. Equal inputs have equal ids in all renderers with the same [`DecisionKey`].
    pub fn decision(&self) -> DecisionId {
        self.decision
    }

    /// Returns the id of an assessment of these live children, which is a decision of its own.
    pub fn assessment(&self, outcome: &Outcome, children: &[Child]) -> DecisionId {
        let decision = Digest::of_written(&self.decision);
        DecisionId::new(&self.decision_key, &decision, &Digest::of_written(&(outcome, children)))
    }

    /// Returns whether the policies saw the object and every needed object completely. Returns false if a limit hid a
    /// part of an object.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Marks this result as computed in this pass: the memo returned it, but a policy computed it in the same pass.
    pub fn answered_before(&mut self) {
        self.recalled = false;
    }

    /// Returns whether the answer came from the memo.
    pub fn recalled(&self) -> bool {
        self.recalled
    }
}
