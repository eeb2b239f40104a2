//! Policies of snapshots, bound to their settings: what answers for which object, for all verbs alike.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use kaos_policy::{
    contract::{Cluster, ResourceType},
    kubernetes::Checks,
    manifest::Privilege,
    memo::Memo,
    policy::PolicyId,
    render::Renderer,
    settings::SettingsErrors,
};
use serde_json::Value;

use super::Answering;
use crate::catalogue::{Answer, Kind, Snapshot};

/// Bytes of answers that are remembered: what many objects need is decided once on each side.
const MEMORY: usize = 256 << 20;

/// How the operator was started, as far as it decides answers and somebody said it.
#[derive(Debug, Clone, Default)]
pub struct Started {
    /// The facts of its cluster, without what is served.
    pub cluster: Cluster,
    /// The privileges that settings may raise which somebody installs; all, where none are listed.
    pub grantable: Option<BTreeSet<Privilege>>,
    /// What is found out of manifests before an API server refuses them.
    pub checks: Checks,
}

/// Policies bound to their settings, shared by all snapshots.
#[derive(Default)]
pub(crate) struct Bound {
    renderers: Vec<Renderer>,
    /// By the place in memory of what answers: snapshots that have something in common have it at the same place.
    of_kinds: HashMap<usize, usize>,
}

/// What one snapshot answers.
pub(crate) struct At<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) bound: &'a Bound,
    /// What answered before, if that is known: it holds on for an object that names a policy that there is not.
    pub(crate) before: Option<&'a Snapshot>,
}

impl Bound {
    /// Binds what a snapshot answers these objects with.
    pub(crate) fn bind<'a>(
        &mut self,
        snapshot: &Snapshot,
        objects: impl IntoIterator<Item = &'a Value>,
        started: &Started,
        is_served: impl Fn(&ResourceType) -> bool,
    ) -> Result<(), SettingsErrors> {
        let memo = Arc::new(Memo::new(MEMORY));
        for object in objects {
            let Some(kind) = answer(snapshot, object) else { continue };
            let key = key(&kind);
            if self.of_kinds.contains_key(&key) {
                continue;
            }
            let renderer = renderer(&kind, started, &is_served)?;
            // Settings for another policy change nothing here.
            let at = self.renderers.iter().position(|known| is_same(known, &renderer)).unwrap_or_else(|| {
                self.renderers.push(renderer.with_memo(Arc::clone(&memo)));
                self.renderers.len() - 1
            });
            self.of_kinds.insert(key, at);
        }
        Ok(())
    }
}

impl<'a> At<'a> {
    /// What answers for an object, as long as the bound policies live.
    pub(crate) fn bound_for(&self, object: &Value) -> Option<&'a Renderer> {
        let holds_on = self.before.filter(|_| named_in_vain(self.snapshot, object).is_some());
        let kind = answer(holds_on.unwrap_or(self.snapshot), object)?;
        self.bound.renderers.get(*self.bound.of_kinds.get(&key(&kind))?)
    }
}

impl Answering for At<'_> {
    fn renderer(&self, object: &Value) -> Option<&Renderer> {
        self.bound_for(object)
    }
}

/// A kind's policies, bound to their settings.
pub(crate) fn renderer(
    kind: &Kind,
    Started { cluster, grantable, checks }: &Started,
    is_served: impl Fn(&ResourceType) -> bool,
) -> Result<Renderer, SettingsErrors> {
    let renderer = kind.renderer(cluster, is_served)?;
    Ok(renderer.with_grantable_privileges(grantable.clone()).with_checks(*checks))
}

/// Whether two answer alike: the same policies, with the same settings from the same places.
fn is_same(one: &Renderer, other: &Renderer) -> bool {
    one.layers().count() == other.layers().count()
        && one.layers().zip(other.layers()).all(|((policy, settings), (other, others))| {
            policy.id() == other.id()
                && policy.grants() == other.grants()
                && policy.limits() == other.limits()
                && settings == others
        })
}

/// What answers for an object; for one that names a policy that there is not, what would without the name.
pub(crate) fn answer(snapshot: &Snapshot, object: &Value) -> Option<Arc<Kind>> {
    snapshot.answer_for(object).kind()
}

/// The policies that an object may name, if it names one that there is not: the operator leaves what exists as it is.
pub(crate) fn named_in_vain(snapshot: &Snapshot, object: &Value) -> Option<Vec<PolicyId>> {
    match snapshot.answer_for(object) {
        Answer::NoSuchPolicy(_, choice) => Some(choice),
        Answer::Kind(_) | Answer::Nothing => None,
    }
}

fn key(kind: &Arc<Kind>) -> usize {
    Arc::as_ptr(kind).addr()
}
