//! Handles renamed ConfigMaps. A rename deletes the ConfigMap with the old name and creates a ConfigMap with the new
//! name. The revision of the old ConfigMap becomes the predecessor of the revision of the new ConfigMap.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use kaos_crds::RevisionState;

use super::{Lifecycle, transition::SOURCE_DELETED};
use crate::{
    catalogue::{
        Reach,
        installed::revision_set::{AdmittedRevision, Content},
    },
    timestamps::written,
};

/// The maximum time between the deletion of the old ConfigMap and the creation of the new ConfigMap in a rename.
const RENAMING: SignedDuration = SignedDuration::from_mins(10);

/// The place of a revision. A new revision with the same place replaces the old revision.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct RevisionPlace<'a> {
    reach: &'a Reach,
    pinned: bool,
    kinds: Vec<String>,
    /// For settings, the policy to which the settings apply. Settings have no kinds.
    settings_for: Option<&'a str>,
}

/// The time when the source of a revision was deleted, and the name of the revision. The revision with the latest
/// deletion has the greatest value.
type Left<'a> = (Option<&'a str>, &'a str);

impl<'a> RevisionPlace<'a> {
    fn of(entry: &'a AdmittedRevision) -> Self {
        let settings_for = match &entry.content {
            Content::Settings(policy, _) => Some(policy.as_str()),
            Content::Lost { policy, kinds, .. } => kinds.is_empty().then_some(policy.as_str()),
            Content::Policy(..) | Content::Unloaded(..) => None,
        };
        Self { reach: &entry.reach, pinned: entry.pinned, kinds: entry.content.kinds(), settings_for }
    }
}

impl Lifecycle {
    /// Gives a predecessor to each revision that waits for a place: the revision that served in this place last.
    pub(super) fn inherit(&mut self, serving: &BTreeSet<String>) {
        for name in serving.iter().filter(|name| self.records.status(name).state == RevisionState::Conflict) {
            let before = self.revisions.entries.get(name).and_then(|entry| self.served_before(name, entry));
            if let (Some(before), Some(entry)) = (before, self.revisions.entries.get_mut(name)) {
                entry.predecessor = Some(before);
            }
        }
    }

    /// Returns the predecessor for the first revision of a new source: the newest revision of the same place whose
    /// source was deleted recently. Returns `None` without such a revision.
    pub(super) fn served_before(&self, name: &str, entry: &AdmittedRevision) -> Option<String> {
        let place = RevisionPlace::of(entry);
        let left = self.left_lately().filter(|(left, (_, other))| *left == place && *other != name);
        let (_, left) = left.map(|(_, left)| left).max()?;
        let status = self.records.status(left);
        // If the rollout of the deleted revision had not ended, take its predecessor, which served the objects that
        // were not moved.
        if status.rollout.is_some() {
            status.predecessor.filter(|before| before != name)
        } else {
            Some(left.to_owned())
        }
    }

    /// Returns the serving revision in the place of a new package if its source was deleted before the new package was
    /// admitted. Otherwise returns `None`.
    pub(super) fn left_in_place(&self, name: &str, entry: &AdmittedRevision) -> Option<String> {
        let place = RevisionPlace::of(entry);
        let is_left = |(other, old): &(&String, &AdmittedRevision)| {
            self.records.status(other).state == RevisionState::Active
                && self.without_source.contains(*other)
                && self.facts().is_successor(name, other)
                && RevisionPlace::of(old) == place
        };
        self.revisions.entries.iter().find(is_left).map(|(other, _)| other.clone())
    }

    /// Returns, for each place with a recently deleted source, the predecessor that a new package would get.
    pub(super) fn awaited(&self) -> BTreeSet<String> {
        let mut newest: BTreeMap<RevisionPlace<'_>, Left<'_>> = BTreeMap::new();
        for (place, left) in self.left_lately() {
            let known = newest.entry(place).or_insert(left);
            *known = left.max(*known);
        }
        newest.into_values().map(|(_, name)| name.to_owned()).collect()
    }

    /// Returns the revisions with a recently deleted source, and their places. A revision whose source was deleted long
    /// ago must not become a predecessor.
    fn left_lately(&self) -> impl Iterator<Item = (RevisionPlace<'_>, Left<'_>)> {
        let lately = self.tools.clock.now().checked_sub(RENAMING).ok().map(written);
        self.records.all().iter().filter_map(move |(name, revision)| {
            let status = revision.status.as_ref().filter(|status| {
                status.state == RevisionState::Superseded
                    && status.reason.as_deref() == Some(SOURCE_DELETED)
                    && status.since >= lately
            })?;
            let entry = self.revisions.entries.get(name)?;
            Some((RevisionPlace::of(entry), (status.since.as_deref(), name.as_str())))
        })
    }
}
