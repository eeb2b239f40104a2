//! Computes the status of an object from its outcome and its live children.

use std::collections::BTreeMap;

use kaos_policy::{
    contract::{Child, Outcome, Reference},
    render::{Assessed, PolicyFailure, Rendered, Renderer, Verdict},
    stamp::controller,
};
use serde_json::Value;
use std::sync::Arc;

use crate::reconcile::{
    children::decide::{Owner, owner},
    context::Context,
    status::observed_generation::is_unseen,
};
use crate::{
    status::{self, Hindrance, Standing},
    watch::Seen,
};

/// Input of an assessment.
pub(crate) struct Question {
    pub(crate) renderer: Arc<Renderer>,
    /// Whether one of the policies belongs to the object's namespace.
    pub(crate) is_local: bool,
    pub(crate) rendered: Arc<Rendered>,
    pub(crate) object: Arc<Value>,
    /// The translated generation. The object may have a newer one by now.
    pub(crate) generation: i64,
    pub(crate) outcome: Outcome,
    pub(crate) hindrance: Hindrance,
    pub(crate) children: Vec<Child>,
    /// The reason for a fallback, if there is one.
    pub(crate) fallback: Option<String>,
}

/// The computed status, without times.
pub(crate) struct Told {
    pub(crate) status: Value,
    /// The fuel that the assessment took.
    pub(crate) fuel: u64,
    /// Whether the policy failed, now or earlier in the pass.
    pub(crate) is_failed: bool,
    /// Whether the policy got no sandbox or no processor. That proves nothing, so the pass is retried.
    pub(crate) is_unasked: bool,
}

impl Context {
    /// Returns the live children of a plan, or without a plan, all children of the object. Also returns whether one of
    /// them reports on an earlier generation.
    pub(crate) async fn children(
        &self,
        rendered: &Rendered,
        uid: &str,
        answers: &BTreeMap<Reference, Value>,
    ) -> (Vec<Child>, bool) {
        let mut unseen = false;
        if rendered.planned().is_none() {
            let mut children = Vec::new();
            for seen in self.watch.children(uid) {
                let live = if seen.is_known() { seen.object() } else { self.untaken(&seen).await };
                unseen |= live.as_ref().is_some_and(is_unseen);
                children.extend(live.map(|live| Child::new(Reference::of_object(&live), Some(&live))));
            }
            return (children, unseen);
        }
        let mut child = |manifest: &Value| {
            let reference = Reference::of_object(manifest);
            let namespace = reference.namespace.as_deref().unwrap_or_default();
            let live = self.watch.live(&reference.of(), namespace, &reference.name).and_then(|seen| seen.object());
            let live = live.or_else(|| answers.get(&reference).cloned());
            // A child of another owner does not count. A kept child has no owner.
            let live = live.filter(|live| match owner(live, uid) {
                Owner::Ours => true,
                Owner::Orphan => controller(manifest).is_none(),
                Owner::Other(_) => false,
            });
            unseen |= live.as_ref().is_some_and(is_unseen);
            Child::new(reference, live.as_ref())
        };
        let children = rendered.manifests().iter().map(&mut child).collect();
        (children, unseen)
    }

    /// Reads a child of an earlier operator that no watch shows. Its takeover waits for a plan.
    async fn untaken(&self, child: &Seen) -> Option<Value> {
        let sight = self.read(&child.reference()).await;
        let sight = sight.inspect_err(|error| tracing::debug!(%error, "a child of an earlier operator cannot be read"));
        sight.ok()?.live().filter(|live| live["metadata"]["uid"] == *child.uid).cloned()
    }

    /// Computes the status.
    pub(crate) async fn assess(&self, question: Question) -> Told {
        let (watch, metrics) = (self.watch.clone(), Arc::clone(&self.metrics));
        let Question { renderer, is_local, rendered, object, generation, outcome, hindrance, children, fallback } =
            question;
        self.compute(is_local, move || {
            let assessed: Result<Assessed, PolicyFailure> = match &rendered.verdict {
                // A policy that just failed is not asked to assess.
                Verdict::Failed(failure) => Err(failure.clone()),
                Verdict::Planned(_) | Verdict::Refused(_) => renderer
                    .assess(&rendered, outcome.clone(), children)
                    .inspect_err(|failed| metrics.policy_failure(&failed.policy, failed.failure.category())),
            };
            let fuel = assessed.as_ref().map_or(0, |assessed| assessed.fuel);
            let (is_failed, is_unasked) = match &assessed {
                Ok(_) => (false, false),
                Err(failed) => (true, failed.failure.says_nothing_of_the_object()),
            };
            let applied_generation = match outcome {
                Outcome::Applied => Some(generation),
                Outcome::Gated | Outcome::Refused(_) | Outcome::Failed(_) => {
                    object["status"]["appliedGeneration"].as_i64()
                }
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
            Told { status: status::compose(&rendered, assessed, standing), fuel, is_failed, is_unasked }
        })
        .await
    }
}
