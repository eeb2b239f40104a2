//! Computes the status that the operator would first write for an object.

use kaos_policy::{
    contract::{Child, Outcome, Reference},
    lookup::Lookup,
    render::{Rendered, Renderer, Verdict},
};
use serde_json::Value;

use super::StoredObjects;
use crate::status::{self, Hindrance, Standing};

/// Returns how far the operator would get with an object, and its status. `left_as_is` says why the operator would not
/// apply a plan, if so.
pub(super) fn first(
    renderer: &Renderer,
    rendered: &Rendered,
    object: &Value,
    (stored, lookup): (&StoredObjects, &dyn Lookup),
    left_as_is: Option<&str>,
) -> (Outcome, Value) {
    let (children, all_live) = children(rendered, stored);
    let outcome = match (&rendered.verdict, left_as_is) {
        (Verdict::Planned(_), Some(why)) => Outcome::Failed(why.to_owned()),
        // Other plan gates hold back the first apply only: they have no effect once all children exist.
        (Verdict::Planned(planned), None) if planned.gates.is_empty() || (all_live && !planned.gates_hold) => {
            Outcome::Applied
        }
        (Verdict::Planned(_), None) => Outcome::Gated,
        (Verdict::Refused(refusal), _) => Outcome::Refused(refusal.clone()),
        (Verdict::Failed(failure), _) => Outcome::Failed(failure.failure.to_string()),
    };
    let hindrance = if left_as_is.is_some() { Hindrance::PolicyNotFound } else { Hindrance::ApplyFailed };
    // A policy that just failed does not assess its children.
    let assessed = match &rendered.verdict {
        Verdict::Failed(failure) => Err(failure.clone()),
        Verdict::Planned(_) | Verdict::Refused(_) => renderer.assess(rendered, outcome.clone(), children),
    };
    // The API server gives a new object generation 1.
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

/// Returns the planned children with their live objects, and whether all of them exist. Without a plan, returns the
/// objects that the object owns.
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
