//! How much the objects of one namespace may need together.
//!
//! Needs come from policies, but what they say may come from objects: without a bound, whoever may create objects in one
//! namespace takes memory from all others. First come, first served: an object that is followed stays so, and the one that
//! asks for too much is told. As soon as the others need less it is woken, and asks again.

use std::collections::{BTreeMap, BTreeSet};

use kaos_policy::contract::Target;

use super::{
    key::{ObjectKey, Wakes},
    needs::Needs,
};
use crate::queue::Urgency;

/// What all objects of one namespace may need there, each counted once however many need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// Needs of both sorts, by name and by labels.
    pub needs: usize,
    /// Of those, needs by labels.
    pub selectors: usize,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { needs: 20_000, selectors: 1_000 }
    }
}

/// Why the needs of an object are not followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the objects of namespace {namespace} need {wanted} {what} together with this one, and the operator follows {most} in a \
     namespace: refer to fewer, or move objects to another namespace"
)]
pub struct TooMany {
    /// Where the objects are.
    pub namespace: String,
    /// What is too much.
    pub what: &'static str,
    /// What it would come to.
    pub wanted: usize,
    /// What it may come to.
    pub most: usize,
}

/// What is needed in each namespace, and who had to be refused.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) used: BTreeMap<String, Used>,
    pub(super) refused: BTreeMap<String, BTreeSet<ObjectKey>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) needs: usize,
    pub(super) selectors: usize,
}

impl Used {
    pub(super) fn of<'a>(targets: impl Iterator<Item = &'a Target>) -> Self {
        targets.fold(Self::default(), |Self { needs, selectors }, target| Self {
            needs: needs + 1,
            selectors: selectors + usize::from(matches!(target, Target::Labelled(_))),
        })
    }
}

impl Ledger {
    /// What is needed changed by one target. Says who may ask again.
    pub(super) fn note(&mut self, target: &Target, needs: &Needs) -> Wakes {
        let namespace = target.namespace().unwrap_or_default();
        let one = Used::of(std::iter::once(target));
        let used = self.used.entry(namespace.to_owned()).or_default();
        if needs.who(target).next().is_some() {
            (used.needs, used.selectors) = (used.needs + one.needs, used.selectors + one.selectors);
            return Wakes::new();
        }
        used.needs = used.needs.saturating_sub(one.needs);
        used.selectors = used.selectors.saturating_sub(one.selectors);
        if *used == Used::default() {
            self.used.remove(namespace);
        }
        let refused = self.refused.get(namespace).into_iter().flatten();
        refused.map(|key| (key.clone(), Urgency::Bulk)).collect()
    }
}
