//! Limits for the needs of all objects in a namespace.
//!
//! Policies choose the needs. But a policy can read the name of a needed object from an object that a user wrote.
//! Without a limit, a user with the right to create objects in one namespace could fill the operator's memory at the
//! expense of all other namespaces. The operator accepts needs in the order in which passes register them, until their
//! namespace reaches the limit. The operator keeps watching the accepted needs. An object whose new needs exceed the
//! limit gets an error. When other objects of the namespace give up needs, the operator wakes the object with the
//! error, and its next pass registers the needs again.

use std::collections::{BTreeMap, BTreeSet};

use kaos_objects::Target;

use super::needs::Needs;
use crate::{
    object_key::{ObjectKey, Wakes},
    queue::Urgency,
};

/// The maximum number of distinct needs of all objects in a namespace. Counts only needs that refer to objects in the
/// same namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// The limit for needs by name and needs by labels together.
    pub needs: usize,
    /// The limit for needs by labels alone.
    pub selectors: usize,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { needs: 20_000, selectors: 1_000 }
    }
}

/// The error if the needs of an object exceed the limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "with this object, the objects of namespace {namespace} need {wanted} {what}, but the limit for a namespace is \
     {most}: refer to fewer objects, or move objects to another namespace"
)]
pub struct TooMany {
    /// The namespace of the objects.
    pub namespace: String,
    /// The kind of need that exceeds the limit.
    pub what: &'static str,
    /// The number of needs that the namespace would have with the new needs of the object.
    pub wanted: usize,
    /// The maximum number of needs in the namespace.
    pub most: usize,
}

/// The number of needs in each namespace, and the objects for which the operator refused needs because of the limit.
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
    /// Updates the counts after a target became needed or unneeded. Returns the refused objects whose needs possibly
    /// fit within the limit now.
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
