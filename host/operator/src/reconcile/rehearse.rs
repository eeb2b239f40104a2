//! What a policy that somebody installed plans is tried before it is done: the API server may refuse a part of it, and
//! then none of it must happen.

use kaos_policy::{contract::Reference, render::Rendered};

use serde_json::Value;

use super::{
    child::{Sight, is_final},
    context::Context,
    decide::{Decision, decide},
    error::CallError,
    gates,
    memory::Memory,
    pass::Subject,
    wanted::Wanted,
};
use crate::hashing::hash;

impl Context {
    /// Has the API server try what would be written, without an effect. Gives its refusal. What the process brought
    /// along, and a plan that was tried before, is not tried.
    pub(super) async fn rehearse(
        &self,
        subject: &Subject<'_>,
        rendered: &Rendered,
        plan: &[Value],
        memory: &mut Memory,
    ) -> Result<Option<String>, CallError> {
        let Some(planned) = rendered.planned() else { return Ok(None) };
        let selected = &subject.selected;
        if selected.kind.revisions().next().is_none() || selected.unknown_pin.is_some() {
            return Ok(None);
        }
        let tried = hash(plan);
        if memory.rehearsed == Some(tried) || gates::bind(planned, &subject.object, &self.watch.children(&subject.uid))
        {
            return Ok(None);
        }
        for manifest in plan {
            let child = Reference::of_object(manifest);
            let sight = self.sight(&child, &subject.uid, memory);
            let wanted = Wanted::new(manifest, &subject.object, sight.live(), &|_| None, plan);
            let served = self.served(&wanted.of)?;
            let calls = self.calls(&served, &wanted.namespace);
            let tried = match &sight {
                Sight::There(live) => match decide(&wanted, &live.object, &subject.uid, live.shared) {
                    Decision::Apply | Decision::Drifted(_) | Decision::Extended => {
                        calls.apply(&wanted.name, &wanted.body, true).await.map(drop)
                    }
                    _ => continue,
                },
                // What is there unseen is not this policy's doing.
                Sight::Unknown | Sight::Absent => calls.apply_new(&wanted.name, &wanted.body, true).await.map(drop),
            };
            match tried {
                Ok(()) => {}
                Err(error) if is_final(&error) => return Ok(Some(format!("the API server refuses its plan: {error}"))),
                Err(error) => return Err(error),
            }
        }
        memory.rehearsed = Some(tried);
        Ok(None)
    }
}
