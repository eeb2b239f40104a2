//! The status that the operator would write first, given what the files hold.

use kaos_policy::{
    contract::{Child, Outcome, Reference},
    lookup::Lookup,
    render::{Rendered, Renderer, Verdict},
};
use serde_json::Value;

use super::Stored;
use crate::status::{self, Hindrance, Standing};

/// How far the host would have come with an object, and its status.
/// `left_as_is` says why the operator does nothing about a plan, if it does not.
pub(super) fn first(
    renderer: &Renderer,
    rendered: &Rendered,
    object: &Value,
    (stored, lookup): (&Stored, &dyn Lookup),
    left_as_is: Option<&str>,
) -> (Outcome, Value) {
    let (children, all_live) = children(rendered, stored);
    let outcome = match (&rendered.verdict, left_as_is) {
        (Verdict::Planned(_), Some(why)) => Outcome::Failed(why.to_owned()),
        // Gates bind until everything is there once.
        (Verdict::Planned(planned), None) if planned.gates.is_empty() || all_live => Outcome::Applied,
        (Verdict::Planned(_), None) => Outcome::Gated,
        (Verdict::Refused(refusal), _) => Outcome::Refused(refusal.clone()),
        (Verdict::Failed(failure), _) => Outcome::Failed(failure.failure.to_string()),
    };
    let hindrance = if left_as_is.is_some() { Hindrance::PolicyNotFound } else { Hindrance::ApplyFailed };
    // A policy that just failed is not asked what to make of it.
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

/// What is planned, with what of it is there; and whether all of it is. Without a plan: what the object owns.
fn children(rendered: &Rendered, stored: &Stored) -> (Vec<Child>, bool) {
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
