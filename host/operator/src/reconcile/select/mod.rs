//! Chooses the policies that answer for an object: those for its kind and namespace, or the pinned policy. If these
//! policies fail on the object, their predecessors answer.

pub(super) mod fallback_round;

use std::sync::Arc;

use kaos_policy::{
    contract::Need,
    policy::PolicyId,
    render::{DecisionId, Rendered, Renderer, Verdict},
};
use serde_json::Value;
use tracing::{Instrument as _, field::Empty};

use crate::reconcile::{
    flight_record::keep_decision,
    memory::Memory,
    policy_runner::PolicyRunner,
    resolve::{self, Resolved},
    select::fallback_round::FallbackRound,
    selected::Selected,
};
use crate::{
    catalogue::{Catalogue, Descent, PIN, Without},
    metrics::Metrics,
    trace::step,
    watch::ObjectKey,
};

/// The result of asking the policies.
pub(crate) enum Asked {
    /// The policies answered.
    Answered(Arc<Renderer>, Arc<Rendered>),
    /// The policies cannot answer yet, because the watch does not know a needed object.
    Pending,
    /// The policies cannot answer because of an error that should not happen.
    Impossible,
}

/// Returns the policies for an object, chosen by its kind, its namespace and its pin. Returns `None` if no policy
/// answers.
pub(crate) fn select(catalogue: &Catalogue, key: &ObjectKey, object: &Value) -> Option<Selected> {
    let snapshot = catalogue.load()?;
    let pin = object["metadata"]["annotations"][PIN].as_str();
    let since = snapshot.of(&key.of).map_or(0, |answers| answers.since);
    let chosen = pin.is_some_and(|pin| !pin.trim().is_empty());
    let selected = |kind, chosen, unknown_pin| Selected { descent: Descent::new(kind), since, chosen, unknown_pin };
    let answer = snapshot.answer(&key.of, &key.namespace, &key.name, pin);
    let unknown_pin = answer.no_such_policy(object);
    answer.kind().map(|kind| selected(kind, chosen && unknown_pin.is_none(), unknown_pin))
}

/// Asks the selected policies. If a policy fails on the object, or if its refusal requests a fallback, asks the
/// predecessors.
pub(crate) async fn ask(
    runner: &PolicyRunner,
    key: &ObjectKey,
    object: &Arc<Value>,
    selected: &mut Selected,
    memory: &mut Memory,
) -> Asked {
    let before = std::mem::take(&mut memory.plan.needed);
    let mut needed = if selected.descent.has_begun() { before.clone() } else { Vec::new() };
    let (mut round, mut left) = (FallbackRound::new(), Vec::new());
    let ((renderer, rendered), last) = loop {
        let additional: Vec<Need> = before.iter().chain(&needed).cloned().collect();
        let (renderer, rendered) = match ask_once(runner, key, object, selected, &additional, memory).await {
            Asked::Answered(renderer, rendered) => (renderer, rendered),
            other => {
                memory.plan.needed = additional;
                return other;
            }
        };
        let last = Arc::clone(&rendered);
        if let Some(counts) = round.hear(&mut selected.descent, &last, (renderer, rendered)) {
            break (counts, last);
        }
        match &last.verdict {
            Verdict::Failed(failure) => fell_back(&runner.metrics, key, selected, &failure.policy, last.decision()),
            Verdict::Refused(_) | Verdict::Planned(_) => left.push(last.policy.clone()),
        }
        needed.extend(last.needs.iter().cloned());
    };
    // Count a refusal as a fallback only if a predecessor makes a plan for the object.
    if last.planned().is_some() {
        for policy in &left {
            runner.metrics.fallback(policy);
        }
    }
    let refused_by_all = !Arc::ptr_eq(&rendered, &last);
    if refused_by_all || selected.descent.has_begun() {
        needed.extend(last.needs.iter().cloned());
        memory.plan.needed = needed;
    }
    Asked::Answered(renderer, rendered)
}

/// Asks the selected policies once.
async fn ask_once(
    runner: &PolicyRunner,
    key: &ObjectKey,
    object: &Arc<Value>,
    selected: &Selected,
    additional: &[Need],
    memory: &mut Memory,
) -> Asked {
    let span = step!(
        "ask",
        policy = Empty,
        version = Empty,
        digest = Empty,
        fuel = Empty,
        remembered = Empty,
        decision = Empty
    );
    let asked = ask_policies(runner, key, object, selected, additional, memory).instrument(span.clone()).await;
    if let Asked::Answered(_, rendered) = &asked {
        let PolicyId { name, version, digest } = &rendered.policy;
        span.record("policy", &**name).record("version", &**version).record("digest", digest.short());
        let fuel = if rendered.recalled() { 0 } else { rendered.fuel };
        span.record("fuel", fuel).record("remembered", rendered.recalled());
        span.record("decision", tracing::field::display(rendered.decision()));
    }
    asked
}

async fn ask_policies(
    runner: &PolicyRunner,
    key: &ObjectKey,
    object: &Arc<Value>,
    selected: &Selected,
    additional: &[Need],
    memory: &mut Memory,
) -> Asked {
    let renderer = match runner.renderer(&selected.descent.kind) {
        Ok(renderer) => renderer,
        // An error never happens here, because the catalogue accepts only settings that fit the policies.
        Err(errors) => {
            tracing::error!(%errors, "the active settings do not fit the active policy");
            return Asked::Impossible;
        }
    };
    let rendered =
        match resolve::resolve(runner, key, object, &renderer, selected.descent.kind.is_local(), additional, memory)
            .await
        {
            Ok(Resolved::Complete(rendered)) => rendered,
            Ok(Resolved::Pending) => return Asked::Pending,
            Err(error) => {
                // An error never happens here, because the watch provides only objects of this kind.
                tracing::error!(object = %key, %error, "could not render the object");
                return Asked::Impossible;
            }
        };
    runner.metrics.answer(&rendered.policy, rendered.fuel, rendered.recalled());
    if let Verdict::Failed(failure) = &rendered.verdict {
        runner.metrics.policy_failure(&failure.policy, failure.failure.category());
    }
    keep_decision(runner, &renderer, &rendered, selected, memory);
    Asked::Answered(renderer, rendered)
}

/// Makes the predecessor answer for an object on which a policy failed. Returns whether a predecessor exists.
pub(crate) fn fall_back(
    metrics: &Metrics,
    key: &ObjectKey,
    selected: &mut Selected,
    failed: &PolicyId,
    (how, decision): (&str, DecisionId),
) -> bool {
    let falls_back = selected.descent.failed(failed, how);
    if falls_back {
        fell_back(metrics, key, selected, failed, decision);
    }
    falls_back
}

fn fell_back(metrics: &Metrics, key: &ObjectKey, selected: &Selected, failed: &PolicyId, decision: DecisionId) {
    if let Some(Without { revision, how, .. }) = selected.descent.without.last() {
        let revision = &**revision;
        tracing::warn!(object = %key, revision, how, %decision, "falling back to the previous revision");
    }
    metrics.fallback(failed);
}
