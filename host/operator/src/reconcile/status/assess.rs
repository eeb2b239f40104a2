//! Composes the status of an object from the result of its pass and from its live children, which the policy assesses.
//! This step sends no requests.

use std::sync::Arc;

use kaos_policy::{
    contract::{Child, Outcome},
    render::{Assessed, DecisionId, PolicyFailure, Verdict},
};
use serde_json::Value;
use tokio::time::Instant;

use crate::{
    reconcile::{
        applied::Applied, flight_record::Recording, policy_runner::PolicyRunner, prepare::Prepared, subject::Subject,
    },
    record::FailedAssessment,
    status::{self, Standing},
};

/// A composed status, without transition times. Only the result of a pass can become such a value.
pub(crate) struct Composed(Value);

impl Composed {
    /// Returns the status after a pass that did not finish: the live status with the condition that reports this.
    /// Returns `None` for a pass that finished.
    pub(crate) fn unfinished(applied: &Applied, object: &Value) -> Option<Self> {
        let why = applied.why_unfinished()?;
        let (of, reason, message) = why.condition();
        Some(Self(status::amend(object, of, reason, &message, why.is_lasting())))
    }

    /// Returns the content of the status.
    pub(crate) fn into_value(self) -> Value {
        self.0
    }
}

pub(crate) struct Assessment {
    pub(crate) status: Composed,
    /// The fuel that the assessment used.
    pub(crate) fuel: u64,
    /// Whether a policy failed during the assessment, or earlier in the pass.
    pub(crate) is_failed: bool,
    /// Whether the failure is only a missing sandbox or too little processor time. Then the policy is not the cause,
    /// and the operator retries the pass.
    pub(crate) is_unasked: bool,
    /// The id under which the flight recorder keeps a failed assessment. `None` if the assessment did not fail.
    pub(crate) decision: Option<DecisionId>,
}

/// Asks the policy to assess the children, and composes the status.
pub(crate) async fn assess(
    runner: &PolicyRunner,
    subject: &Subject<'_>,
    prepared: &Prepared,
    applied: &Applied,
    children: Vec<Child>,
) -> Assessment {
    let (watch, metrics) = (runner.watch.clone(), Arc::clone(&runner.metrics));
    let (renderer, rendered) = (Arc::clone(&prepared.renderer), Arc::clone(&prepared.rendered));
    let (object, generation) = (Arc::clone(&subject.object), subject.generation);
    let (outcome, hindrance) = (applied.outcome.clone(), applied.hindrance);
    let fallback = subject.selected.fallback();
    let recording = Recording::of(runner, &subject.selected);
    let (budgets, key) = (Arc::clone(&runner.budgets), subject.key.clone());
    let compose = move || {
        let (mut decision, mut used) = (None, 0);
        let assessed: Result<Assessed, PolicyFailure> = match &rendered.verdict {
            // Do not let a policy assess the children if it just failed.
            Verdict::Failed(failure) => Err(failure.clone()),
            Verdict::Planned(_) | Verdict::Refused(_) => {
                let (assessed, fuel, children) = renderer.assess_counted(&rendered, outcome.clone(), children);
                used = fuel;
                // Charge the budget here, inside the work: the work continues and uses fuel even if the pass is
                // aborted.
                budgets.pay(&key, Instant::now(), fuel);
                assessed.inspect_err(|failed| {
                    metrics.policy_failure(&failed.policy, failed.failure.category());
                    let failed =
                        FailedAssessment { outcome: outcome.clone(), children: &children, failure: failed, fuel };
                    decision = recording.keep_assessment(&renderer, &rendered, failed);
                })
            }
        };
        let (is_failed, is_unasked) = match &assessed {
            Ok(_) => (false, false),
            Err(failed) => (true, failed.failure.says_nothing_of_the_object()),
        };
        let applied_generation = match outcome {
            Outcome::Applied => Some(generation),
            Outcome::Gated | Outcome::Refused(_) | Outcome::Failed(_) => object["status"]["appliedGeneration"].as_i64(),
        };
        let standing = Standing {
            outcome: &outcome,
            hindrance,
            missing: &status::missing(&rendered, &watch.lookup()),
            generation,
            applied_generation,
            before: object.get("status"),
            fallback: fallback.as_deref(),
        };
        let status = Composed(status::compose(&rendered, assessed, standing));
        Assessment { status, fuel: used, is_failed, is_unasked, decision }
    };
    runner.compute(subject.selected.descent.kind.is_local(), compose).await
}
