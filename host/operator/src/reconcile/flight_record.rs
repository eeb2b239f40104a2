//! Keeps decisions of the policies in the flight recorder: every failure, refusal, fallback and change of a plan, and
//! some of the routine decisions. If a pass decides with the same inputs as the previous pass over the object, the
//! recorder keeps nothing.

use std::sync::Arc;

use jiff::Timestamp;
use kaos_policy::{
    contract::ResourceType,
    lookup::Lookup as _,
    render::{DecisionId, Rendered, Renderer, Verdict},
};

use super::{
    memory::{Decided, Memory},
    policy_runner::PolicyRunner,
    selected::Selected,
};
use crate::{
    catalogue::{Kind, Without},
    hashing::hash,
    record::{FailedAssessment, RecordedPass, Recorder, Why},
    watch::Watch,
};

/// Keeps the decision of the policies that the pass asked last, if the recorder wants it. Does not wait until the case
/// is written. Drops the decision if too many cases wait to be written: if it is a failure, a refusal or a fallback,
/// the next pass offers it again.
pub(crate) fn keep_decision(
    runner: &PolicyRunner,
    renderer: &Arc<Renderer>,
    rendered: &Arc<Rendered>,
    selected: &Selected,
    memory: &mut Memory,
) {
    let decision = rendered.decision();
    memory.plan.decision = Some(decision);
    let depth = selected.descent.without.len();
    let before = memory.plan.decided.iter().find(|decided| decided.depth == depth).copied();
    let is_same = before.is_some_and(|before| before.decision == decision);
    let is_served = rendered.planned().is_some() && !selected.stands_in();
    if is_same && (is_served || !runner.recorder.wants(decision, Why::Failure)) {
        return;
    }
    let plan = rendered.planned().map(|planned| hash(&planned.manifests));
    let Some(why) = why(rendered, selected, before, plan) else { return };
    memory.plan.decided.retain(|decided| decided.depth < depth);
    memory.plan.decided.push(Decided { depth, decision, plan });
    if !runner.recorder.wants(decision, why) {
        return;
    }
    let Some(place) = runner.recorder.place(why) else { return };
    let recording = Recording::of(runner, selected);
    let (renderer, rendered) = (Arc::clone(renderer), Arc::clone(rendered));
    runner.processors.spawn_case(move || {
        recording.keep(&renderer, &rendered, why, None);
        drop(place);
    });
}

/// The data of a pass that a recorded case needs, in addition to the answer of the policies.
pub(crate) struct Recording {
    recorder: Arc<Recorder>,
    at: Timestamp,
    watch: Watch,
    kind: Arc<Kind>,
    without: Vec<Without>,
}

impl Recording {
    /// Prepares to record decisions of the selected policies.
    pub(crate) fn of(runner: &PolicyRunner, selected: &Selected) -> Self {
        Self {
            recorder: Arc::clone(&runner.recorder),
            at: runner.clock.now(),
            watch: runner.watch.clone(),
            kind: Arc::clone(&selected.descent.kind),
            without: selected.descent.without.clone(),
        }
    }

    /// Keeps an assessment that failed. Returns its id. Returns `None` for a failure that says nothing about the
    /// object.
    pub(crate) fn keep_assessment(
        &self,
        renderer: &Renderer,
        rendered: &Rendered,
        failed: FailedAssessment<'_>,
    ) -> Option<DecisionId> {
        if failed.failure.failure.says_nothing_of_the_object() {
            return None;
        }
        let decision = rendered.assessment(&failed.outcome, failed.children);
        if self.recorder.wants(decision, Why::Failure) {
            self.keep(renderer, rendered, Why::Failure, Some(failed));
        }
        Some(decision)
    }

    /// Keeps the decision of a pass. If `failed` is given, keeps this failed assessment instead.
    fn keep(&self, renderer: &Renderer, rendered: &Rendered, why: Why, failed: Option<FailedAssessment<'_>>) {
        let Self { recorder, at, watch, kind, without } = self;
        let lookup = watch.lookup();
        let is_cluster_scoped = &|of: &ResourceType| lookup.is_cluster_scoped(of);
        let (at, kind, without) = (*at, &**kind, without.as_slice());
        let pass = RecordedPass { at, why, renderer, rendered, kind, without, is_cluster_scoped };
        let case = match failed {
            None => pass.case(),
            Some(failed) => pass.assessment(failed),
        };
        recorder.keep(&case, at);
    }
}

/// Returns why the recorder should keep the decision of a pass. Returns `None` for a failure that says nothing about
/// the object.
fn why(rendered: &Rendered, selected: &Selected, before: Option<Decided>, plan: Option<u64>) -> Option<Why> {
    Some(match &rendered.verdict {
        Verdict::Failed(failure) if failure.failure.says_nothing_of_the_object() => return None,
        Verdict::Failed(_) => Why::Failure,
        Verdict::Refused(_) => Why::Refusal,
        Verdict::Planned(_) if selected.stands_in() => Why::Fallback,
        Verdict::Planned(_) => match before {
            Some(before) if before.plan == plan => Why::Routine,
            // The operator has just started, and does not remember the previous plan: if a plan was applied before,
            // assume that it is the same.
            None if rendered.subject().applied => Why::Routine,
            Some(_) | None => Why::Change,
        },
    })
}
