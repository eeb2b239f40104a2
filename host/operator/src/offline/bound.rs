//! Binds the policies of a catalogue's snapshots to their settings. All commands use this code, so they agree on which
//! policy answers for which object.

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

/// The size limit of the cache for answers, in bytes. The cache avoids that a comparison of snapshots computes an equal
/// answer twice.
const MEMORY: usize = 256 << 20;

/// The start options of the operator that affect the answers of policies.
#[derive(Debug, Clone, Default)]
pub struct Started {
    /// The facts of the operator's cluster, without the list of served types.
    pub cluster: Cluster,
    /// The privileges that installed settings may set; `None` for all.
    pub grantable: Option<BTreeSet<Privilege>>,
    /// The checks that the operator runs on manifests before it sends them to the API server.
    pub checks: Checks,
}

/// The policies of all snapshots, bound to their settings.
#[derive(Default)]
pub(crate) struct Bound {
    renderers: Vec<Renderer>,
    /// Maps the address of each [`Kind`] to an index in `renderers`. Snapshots share equal kinds, so the address
    /// identifies the kind.
    of_kinds: HashMap<usize, usize>,
}

/// The bound policies of one snapshot.
pub(crate) struct At<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) bound: &'a Bound,
    /// The snapshot before a change; `None` without a change. This snapshot still answers for an object whose pin names
    /// a policy that the change removes.
    pub(crate) before: Option<&'a Snapshot>,
}

impl Bound {
    /// Binds those policies of `snapshot` that answer for the `objects`.
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
            // If several `Kind` values have the same policies with the same settings, they share a renderer.
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
    /// Returns the renderer for an object, or `None` if no policy answers for the object. The reference borrows from
    /// the bound policies, so it can live longer than `self`.
    pub(crate) fn bound_for(&self, object: &Value) -> Option<&'a Renderer> {
        let kind = answer_after(self.snapshot, self.before, object)?;
        self.bound.renderers.get(*self.bound.of_kinds.get(&key(&kind))?)
    }
}

impl Answering for At<'_> {
    fn renderer(&self, object: &Value) -> Option<&Renderer> {
        self.bound_for(object)
    }
}

/// Binds a kind's policies to their settings.
pub(crate) fn renderer(
    kind: &Kind,
    Started { cluster, grantable, checks }: &Started,
    is_served: impl Fn(&ResourceType) -> bool,
) -> Result<Renderer, SettingsErrors> {
    let renderer = kind.renderer(cluster, is_served)?;
    Ok(renderer.with_grantable_privileges(grantable.clone()).with_checks(*checks))
}

/// Returns the policies that answer for an object in `snapshot`. `before` is the snapshot before a change, or `None`
/// without a change. If the object's pin names no policy in `snapshot`, the policies in `before` answer.
pub(crate) fn answer_after(snapshot: &Snapshot, before: Option<&Snapshot>, object: &Value) -> Option<Arc<Kind>> {
    let holds_on = before.filter(|_| named_in_vain(snapshot, object).is_some());
    answer(holds_on.unwrap_or(snapshot), object)
}

/// Returns whether two renderers give the same answers: they have the same policies, with the same settings from the
/// same origins.
pub(crate) fn is_same(one: &Renderer, other: &Renderer) -> bool {
    one.layers().count() == other.layers().count()
        && one.layers().zip(other.layers()).all(|((policy, settings), (other, others))| {
            policy.id() == other.id()
                && policy.grants() == other.grants()
                && policy.limits() == other.limits()
                && settings == others
        })
}

/// Returns the policies that answer for an object, or `None` if no policy answers. Ignores a pin that names a policy
/// that does not exist.
pub(crate) fn answer(snapshot: &Snapshot, object: &Value) -> Option<Arc<Kind>> {
    snapshot.answer_for(object).kind()
}

/// If the object's pin names a policy that does not exist, returns the policies that the object may pin. With such a
/// pin, the operator leaves the object's children unchanged.
pub(crate) fn named_in_vain(snapshot: &Snapshot, object: &Value) -> Option<Vec<PolicyId>> {
    match snapshot.answer_for(object) {
        Answer::NoSuchPolicy(_, choice) => Some(choice),
        Answer::Kind(_) | Answer::Nothing => None,
    }
}

fn key(kind: &Arc<Kind>) -> usize {
    Arc::as_ptr(kind).addr()
}
