//! Sends an installed policy's plan to the API server as a dry run. If the server refuses a part of the plan, the
//! operator applies no part of the plan.

use kaos_policy::{contract::Reference, render::Rendered};
use serde_json::Value;
use tracing::Instrument as _;

use crate::hashing::hash;
use crate::reconcile::{
    access::Access,
    children::apply::{LOOKS, comes_and_goes},
    children::child::{apply_unseen, try_change},
    children::decide::{Decision, decide},
    children::final_manifest::Wanted,
    children::sight::{Made, Sight, sight},
    error::CallError,
    memory::Memory,
    resolve::gates,
    subject::Subject,
};
use crate::trace::step;

/// Sends each write of the plan as a dry run. Returns the first child that the API server refuses, with the refusal.
/// Returns an error if a dry run fails for another reason, so that it is unknown whether the server accepts the plan.
/// Sends no dry run for a policy that the process loaded at startup, or for an object whose pin matches no policy. Also
/// sends none for a plan that waits at a plan gate or already passed its dry run.
pub(crate) async fn rehearse(
    access: &Access,
    subject: &Subject<'_>,
    rendered: &Rendered,
    plan: &[Value],
    memory: &mut Memory,
) -> Result<Option<(Reference, String)>, CallError> {
    let Some(planned) = rendered.planned() else { return Ok(None) };
    let selected = &subject.selected;
    if selected.descent.kind.revisions().next().is_none() || selected.unknown_pin.is_some() {
        return Ok(None);
    }
    let tried = hash(plan);
    if memory.plan.rehearsed == Some(tried)
        || gates::bind(planned, &subject.object, &access.watch.children(&subject.uid))
    {
        return Ok(None);
    }
    for manifest in plan {
        let child = Reference::of_object(manifest);
        let mut seen = sight(&access.watch, &child, &subject.uid, &memory.children);
        let span = step!("dry run", kind = %child.kind, name = %child.name);
        for look in 0.. {
            match attempt(access, subject, manifest, plan, seen).instrument(span.clone()).await {
                Ok(None) => break,
                Ok(Some(found)) if look < LOOKS => seen = found,
                Ok(Some(_)) => return Err(comes_and_goes(&child)),
                Err(error) if error.is_final() => {
                    return Ok(Some((child, format!("the API server refuses its plan: {error}"))));
                }
                Err(error) => return Err(error),
            }
        }
    }
    memory.plan.rehearsed = Some(tried);
    Ok(None)
}

/// Sends a dry run for one child if the operator would create the child, or change a child that it applied before.
/// Sends none for a takeover, and none only to remove leftover fields. If the cluster has another child than expected,
/// returns the other child, so that the caller tries again with it.
async fn attempt(
    access: &Access,
    subject: &Subject<'_>,
    manifest: &Value,
    plan: &[Value],
    sight: Sight,
) -> Result<Option<Sight>, CallError> {
    let wanted = Wanted::new(manifest, &subject.object, sight.live(), &|_| false, plan);
    let Sight::There(live) = sight else {
        return Ok(match apply_unseen(access, &wanted, true).await? {
            Made::Done(_) => None,
            Made::Found(found) => Some(found),
        });
    };
    let changes = matches!(
        decide(&wanted, &live.object, &subject.uid, live.shared),
        Decision::Apply | Decision::Drifted(_) | Decision::Extended
    );
    if changes { try_change(access, &wanted, &live.object).await } else { Ok(None) }
}
