//! Computes the status that the operator would first write for an object.

use kaos_policy::{
    contract::{Child, Outcome, Reference},
    lookup::Lookup,
    render::{Rendered, Renderer, Verdict},
};
use serde_json::Value;

use super::StoredObjects;
use crate::{
    plan_gates,
    status::{self, Hindrance, Standing},
};

/// Returns the outcome of the operator's first pass over an object, and the status that this pass writes. `left_as_is`
/// is the reason why the operator would not apply a plan; `None` if the operator would apply the plan.
pub(super) fn first(
    renderer: &Renderer,
    rendered: &Rendered,
    object: &Value,
    (stored, lookup): (&StoredObjects, &dyn Lookup),
    left_as_is: Option<&str>,
) -> (Outcome, Value) {
    let (children, all_live) = children(rendered, stored);
    let was_applied = all_live || plan_gates::was_applied(object);
    let outcome = match (&rendered.verdict, left_as_is) {
        (Verdict::Planned(_), Some(why)) => Outcome::Failed(why.to_owned()),
        // If the plan sets `gates_hold`, its gates hold back every apply. Otherwise, the gates hold back only the first
        // apply: they have no effect if the operator has applied a plan in full before, or if all children exist.
        (Verdict::Planned(planned), None) if plan_gates::let_through(planned, was_applied) => Outcome::Applied,
        (Verdict::Planned(_), None) => Outcome::Gated,
        (Verdict::Refused(refusal), _) => Outcome::Refused(refusal.clone()),
        (Verdict::Failed(failure), _) => Outcome::Failed(failure.failure.to_string()),
    };
    let hindrance = if left_as_is.is_some() { Hindrance::PolicyNotFound } else { Hindrance::ApplyFailed };
    // If a policy just failed, do not let it assess the children.
    let assessed = match &rendered.verdict {
        Verdict::Failed(failure) => Err(failure.clone()),
        Verdict::Planned(_) | Verdict::Refused(_) => renderer.assess(rendered, outcome.clone(), children),
    };
    // The API server gives generation 1 to a new object.
    let generation = object["metadata"]["generation"].as_i64().unwrap_or(1);
    let standing = Standing {
        outcome: &outcome,
        hindrance,
        missing: &status::missing(rendered, lookup),
        generation,
        applied_generation: match outcome {
            Outcome::Applied => Some(generation),
            _ => object["status"]["appliedGeneration"].as_i64(),
        },
        before: None,
        fallback: None,
    };
    let status = status::compose(rendered, assessed, standing);
    (outcome, status)
}

/// Returns the planned children with their live objects, and whether all children exist. Without a plan, returns the
/// live objects that the object owns.
fn children(rendered: &Rendered, stored: &StoredObjects) -> (Vec<Child>, bool) {
    if rendered.planned().is_none() {
        let owned = stored.owned_by(&rendered.object).map(|live| Child::new(Reference::of_object(live), Some(live)));
        return (owned.collect(), false);
    }
    let mut all_live = true;
    let children = rendered.manifests().iter().map(|manifest| {
        let reference = Reference::of_object(manifest);
        let live = stored.named(&reference);
        all_live &= live.is_some();
        Child::new(reference, live)
    });
    let children = children.collect();
    (children, all_live)
}
