//! From what was done and what is there to the status that is wanted.

use std::collections::BTreeMap;

use kaos_policy::{
    contract::{Child, Outcome, Reference},
    render::{Assessed, PolicyFailure, Rendered, Renderer, Verdict},
    stamp::controller,
};
use serde_json::Value;
use std::sync::Arc;

use super::{
    context::Context,
    decide::{Owner, owner},
    unseen::is_unseen,
};
use crate::{
    status::{self, Hindrance, Standing},
    watch::Seen,
};

/// What assessing needs beside the context.
pub(crate) struct Question {
    pub(crate) renderer: Arc<Renderer>,
    /// Whether a policy of it is the namespace's own.
    pub(crate) is_local: bool,
    pub(crate) rendered: Arc<Rendered>,
    pub(crate) object: Arc<Value>,
    /// The generation that was translated; the object may have come to a newer one since.
    pub(crate) generation: i64,
    pub(crate) outcome: Outcome,
    pub(crate) hindrance: Hindrance,
    pub(crate) children: Vec<Child>,
    /// Why something else answers than was to be expected.
    pub(crate) fallback: Option<String>,
}

/// The status that is wanted, without times.
pub(crate) struct Told {
    pub(crate) status: Value,
    /// What it cost to find out.
    pub(crate) fuel: u64,
    /// Whether the policy failed, on this or before.
    pub(crate) is_failed: bool,
    /// Whether it got no sandbox or no processor, which says nothing and is tried again.
    pub(crate) is_unasked: bool,
}

impl Context {
    /// The children of a plan as they are, and whether one of them reports on what it was before; without a plan, what
    /// the object owns.
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
            // What somebody else owns is no child; what is kept has no owner.
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

    /// A child that an earlier operator made and that waits to be taken over until there is a plan: no watch shows it.
    async fn untaken(&self, child: &Seen) -> Option<Value> {
        let sight = self.read(&child.reference()).await;
        let sight = sight.inspect_err(|error| tracing::debug!(%error, "a child of an earlier operator cannot be read"));
        sight.ok()?.live().filter(|live| live["metadata"]["uid"] == *child.uid).cloned()
    }

    /// What is to be told.
    pub(crate) async fn assess(&self, question: Question) -> Told {
        let (watch, metrics) = (self.watch.clone(), Arc::clone(&self.metrics));
        let Question { renderer, is_local, rendered, object, generation, outcome, hindrance, children, fallback } =
            question;
        self.compute(is_local, move || {
            let assessed: Result<Assessed, PolicyFailure> = match &rendered.verdict {
                // A policy that just failed is not asked what to make of it.
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
