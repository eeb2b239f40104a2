//! Makes a case from a pass.

use std::sync::Arc;

use kaos_policy::{
    contract::{Child, Outcome, ResourceType},
    gate::CodeForm,
    policy::Policy,
    render::{PolicyFailure, Rendered, Renderer},
};

use super::{Case, CaseAnswer, CaseVerdict, FORMAT, ObservedChildren, PassedOver, PolicySource, Versions, Why};
use crate::{
    catalogue::{Kind, Without},
    embedded,
};

/// A pass to record.
pub(crate) struct RecordedPass<'a> {
    pub(crate) at: jiff::Timestamp,
    pub(crate) why: Why,
    pub(crate) renderer: &'a Renderer,
    pub(crate) rendered: &'a Rendered,
    /// The policies that answered.
    pub(crate) kind: &'a Kind,
    /// The newer revisions that failed on the object or refused it.
    pub(crate) without: &'a [Without],
    pub(crate) is_cluster_scoped: &'a dyn Fn(&ResourceType) -> bool,
}

/// A failed call of a policy's function `assess`.
pub(crate) struct FailedAssessment<'a> {
    pub(crate) outcome: Outcome,
    pub(crate) children: &'a [Child],
    pub(crate) failure: &'a PolicyFailure,
    pub(crate) fuel: u64,
}

impl RecordedPass<'_> {
    /// Returns the case for the answer of the pass. The case still contains secret values: [`Case::masked`] masks them.
    pub(crate) fn case(&self) -> Case {
        let Self { at, why, renderer, rendered, kind, without, is_cluster_scoped } = self;
        let passed_over = without
            .iter()
            .map(|Without { revision, how, .. }| PassedOver { revision: revision.to_string(), how: how.clone() });
        let incomplete = (!rendered.is_whole()).then(|| {
            "the object or a needed object is too large for policies, so the case contains only its name".to_owned()
        });
        Case {
            format: FORMAT.to_owned(),
            decision: rendered.decision(),
            object: rendered.object.reference(),
            at: at.to_string(),
            why: *why,
            operator: Versions::of_this_program(),
            policies: renderer.layers().map(|(policy, _)| source(policy, kind)).collect(),
            inputs: renderer.inputs(rendered, is_cluster_scoped),
            answer: CaseAnswer::new(CaseVerdict::of(rendered), rendered.fuel),
            assessed: None,
            passed_over: passed_over.collect(),
            masked: None,
            incomplete,
        }
    }
}

impl RecordedPass<'_> {
    /// Returns the case for a call of `assess` that failed after the pass.
    pub(crate) fn assessment(
        &self,
        FailedAssessment { outcome, children, failure, fuel }: FailedAssessment<'_>,
    ) -> Case {
        Case {
            decision: self.rendered.assessment(&outcome, children),
            answer: CaseAnswer::new(CaseVerdict::failed(failure), fuel),
            assessed: Some(ObservedChildren::new(outcome, children)),
            ..self.case()
        }
    }
}

fn source(policy: &Arc<Policy>, kind: &Kind) -> PolicySource {
    let id = policy.id();
    let (revision, package) = kind.source_of(id);
    let is_default = embedded::DEFAULTS.iter().any(|default| default.digest == id.digest.hex());
    let from = match &revision {
        Some(revision) => format!("PolicyRevision {revision}"),
        None if is_default => format!("a default policy of kaos-operator {}", env!("CARGO_PKG_VERSION")),
        None => "a component of the operator's flag --policy".to_owned(),
    };
    let script_engine = policy.script_engine();
    let form = if script_engine.is_some() { CodeForm::Script } else { CodeForm::Component };
    let revision = revision.map(|revision| revision.to_string());
    PolicySource { digest: id.digest, from, revision, package, script_engine, form, code: None }
}
