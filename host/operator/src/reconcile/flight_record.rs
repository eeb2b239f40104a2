//! Keeps decisions of the policies in the flight recorder: every failure, refusal, fallback and change of a plan, and some
//! of the routine decisions. A pass with the same inputs as the pass before keeps nothing.

use std::sync::Arc;

use kaos_policy::{
    contract::ResourceType,
    lookup::Lookup as _,
    render::{Rendered, Renderer, Verdict},
};

use super::{
    memory::{Decided, Memory},
    policy_runner::PolicyRunner,
    selected::Selected,
};
use crate::{
    hashing::hash,
    record::{RecordedPass, Why},
};

/// Keeps the decision of the policies that were asked last, if the recorder wants it.
pub(crate) async fn keep_decision(
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
    if is_same && is_served {
        return;
    }
    let plan = rendered.planned().map(|planned| hash(&planned.manifests));
    let Some(why) = why(rendered, selected, before, plan) else { return };
    memory.plan.decided.retain(|decided| decided.depth < depth);
    memory.plan.decided.push(Decided { depth, decision, plan });
    if !runner.recorder.wants(decision, why) {
        return;
    }
    let (recorder, at, watch) = (Arc::clone(&runner.recorder), runner.clock.now(), runner.watch.clone());
    let (renderer, rendered, kind) = (Arc::clone(renderer), Arc::clone(rendered), Arc::clone(&selected.descent.kind));
    let (is_local, without) = (kind.is_local(), selected.descent.without.clone());
    let keep = move || {
        let lookup = watch.lookup();
        let is_cluster_scoped = |of: &ResourceType| lookup.is_cluster_scoped(of);
        let (renderer, rendered, kind) = (&*renderer, &*rendered, &*kind);
        let without = without.as_slice();
        let is_cluster_scoped = &is_cluster_scoped;
        let pass = RecordedPass { at, why, renderer, rendered, kind, without, is_cluster_scoped };
        recorder.keep(&pass.case(), at);
    };
    runner.compute(is_local, keep).await;
}

/// Returns why the recorder can keep a decision. Returns `None` for a failure that says nothing about the object.
fn why(rendered: &Rendered, selected: &Selected, before: Option<Decided>, plan: Option<u64>) -> Option<Why> {
    Some(match &rendered.verdict {
        Verdict::Failed(failure) if failure.failure.says_nothing_of_the_object() => return None,
        Verdict::Failed(_) => Why::Failure,
        Verdict::Refused(_) => Why::Refusal,
        Verdict::Planned(_) if selected.stands_in() => Why::Fallback,
        Verdict::Planned(_) => match before {
            Some(before) if before.plan == plan => Why::Routine,
            Some(_) => Why::Change,
            // After a start of the operator, every object has a first decision.
            None if rendered.subject().applied => Why::Routine,
            None => Why::Change,
        },
    })
}
