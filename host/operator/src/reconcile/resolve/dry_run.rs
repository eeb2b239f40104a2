//! Dry run of an installed policy's plan. The API server may refuse a part of it, and then the operator applies none of
//! it.

use kaos_policy::{contract::Reference, render::Rendered};

use serde_json::Value;

use crate::hashing::hash;
use crate::reconcile::{
    children::apply::{LOOKS, comes_and_goes},
    children::child::{Made, Sight, is_final},
    children::decide::{Decision, decide},
    children::final_manifest::Wanted,
    context::Context,
    error::CallError,
    memory::Memory,
    resolve::gates,
    subject::Subject,
};

impl Context {
    /// Runs a dry run of every write of the plan. Returns the API server's refusal; after an error the answer stays
    /// open. Skips default policies and plans that passed before.
    pub(crate) async fn rehearse(
        &self,
        subject: &Subject<'_>,
        rendered: &Rendered,
        plan: &[Value],
        memory: &mut Memory,
    ) -> Result<Option<String>, CallError> {
        let Some(planned) = rendered.planned() else { return Ok(None) };
        let selected = &subject.selected;
        if selected.descent.kind.revisions().next().is_none() || selected.unknown_pin.is_some() {
            return Ok(None);
        }
        let tried = hash(plan);
        if memory.rehearsed == Some(tried) || gates::bind(planned, &subject.object, &self.watch.children(&subject.uid))
        {
            return Ok(None);
        }
        for manifest in plan {
            let child = Reference::of_object(manifest);
            let mut sight = self.sight(&child, &subject.uid, memory);
            for look in 0.. {
                match self.attempt(subject, manifest, plan, sight).await {
                    Ok(None) => break,
                    Ok(Some(found)) if look < LOOKS => sight = found,
                    Ok(Some(_)) => return Err(comes_and_goes(&child)),
                    Err(error) if is_final(&error) => {
                        return Ok(Some(format!("the API server refuses its plan: {error}")));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        memory.rehearsed = Some(tried);
        Ok(None)
    }

    /// Runs a dry run for one child that would change. Returns the child found instead, if the sight was wrong. Then
    /// the caller tries again with that child.
    async fn attempt(
        &self,
        subject: &Subject<'_>,
        manifest: &Value,
        plan: &[Value],
        sight: Sight,
    ) -> Result<Option<Sight>, CallError> {
        let wanted = Wanted::new(manifest, &subject.object, sight.live(), &|_| false, plan);
        let Sight::There(live) = sight else {
            return Ok(match self.apply_unseen(&wanted, true).await? {
                Made::Done(_) => None,
                Made::Found(found) => Some(found),
            });
        };
        let changes = matches!(
            decide(&wanted, &live.object, &subject.uid, live.shared),
            Decision::Apply | Decision::Drifted(_) | Decision::Extended
        );
        if changes { self.try_change(&wanted, &live.object).await } else { Ok(None) }
    }
}
