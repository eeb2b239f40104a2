//! From the object to its plan: needs, mapping and translation on one view of the cluster, and the needs told to the
//! watch.

use std::sync::Arc;

use kaos_policy::{
    contract::{Need, Target},
    render::{RenderError, Rendered, Renderer},
};
use serde_json::Value;

use super::{
    context::Context,
    memory::{Memory, mark_of},
};
use crate::watch::ObjectKey;

/// What came of rendering.
pub(crate) enum Resolved {
    /// On everything that was asked for.
    Complete(Arc<Rendered>),
    /// Some of what was asked for is not known yet; the watch will say when it is.
    Pending,
}

/// How often what is needed may turn out to be something else, before the pass is put off.
const ROUNDS: usize = 4;

impl Context {
    /// Renders an object. What it needs is watched before the answer counts, so that no change falls in between.
    pub(crate) async fn resolve(
        &self,
        key: &ObjectKey,
        object: &Arc<Value>,
        renderer: &Arc<Renderer>,
        memory: &mut Memory,
    ) -> Result<Resolved, RenderError> {
        for _ in 0..ROUNDS {
            let (rendered, pending) = self.render(object, renderer).await?;
            let watched = memory.needs == Some(Memory::mark_of_needs(&needs(&rendered.needs, memory)));
            if watched && !pending {
                return Ok(Resolved::Complete(Arc::new(rendered)));
            }
            if !self.set_needs(key, &rendered.needs, memory) {
                return Ok(Resolved::Pending);
            }
        }
        Ok(Resolved::Pending)
    }

    /// Renders an object, once, and says whether something that was asked for is not known yet.
    pub(crate) async fn render(
        &self,
        object: &Arc<Value>,
        renderer: &Arc<Renderer>,
    ) -> Result<(Rendered, bool), RenderError> {
        let (watch, object, renderer) = (self.watch.clone(), Arc::clone(object), Arc::clone(renderer));
        self.compute(move || {
            let lookup = watch.lookup();
            let rendered = renderer.render(&object, &lookup)?;
            Ok((rendered, !lookup.pending().is_empty()))
        })
        .await
    }

    /// Has the watch follow what an object needs. Says whether all of it is known.
    pub(crate) fn set_needs(&self, key: &ObjectKey, of_policies: &[Need], memory: &mut Memory) -> bool {
        let all = needs(of_policies, memory);
        memory.needs = Some(Memory::mark_of_needs(&all));
        self.watch.set_needs(key, &all)
    }
}

/// What the policies need, and the names that somebody else has.
fn needs(of_policies: &[Need], memory: &Memory) -> Vec<Need> {
    let conflict = |reference: &kaos_policy::contract::Reference| Need {
        id: format!("conflict/{:016x}", mark_of(reference.to_string().as_bytes())),
        target: Target::Named(reference.clone()),
    };
    of_policies.iter().cloned().chain(memory.conflicts.iter().map(conflict)).collect()
}
