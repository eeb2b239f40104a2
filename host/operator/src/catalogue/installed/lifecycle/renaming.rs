//! A ConfigMap that gets another name is one that goes and one that comes: what came from the one served before what comes
//! from the other.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use kaos_crds::RevisionState;

use super::Lifecycle;
use crate::{
    catalogue::{
        Reach,
        installed::roster::{Content, Entry},
    },
    moments::written,
};

/// How long after a ConfigMap went another one may come that takes its place under another name.
const RENAMING: SignedDuration = SignedDuration::from_mins(10);

/// What a revision serves: one that serves the same took its place.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Place<'a> {
    reach: &'a Reach,
    pinned: bool,
    kinds: Vec<String>,
    /// Settings are for a policy, and not for kinds.
    settings_for: Option<&'a str>,
}

/// Since when nothing comes from a source any more, and the revision that came from it. The greatest went last.
type Left<'a> = (Option<&'a str>, &'a str);

impl<'a> Place<'a> {
    fn of(entry: &'a Entry) -> Self {
        let settings_for = match &entry.content {
            Content::Settings(policy, _) => Some(policy.as_str()),
            Content::Lost { policy, kinds, .. } => kinds.is_empty().then_some(policy.as_str()),
            Content::Policy(..) | Content::Unloaded(..) => None,
        };
        Self { reach: &entry.reach, pinned: entry.pinned, kinds: entry.content.kinds(), settings_for }
    }
}

impl Lifecycle {
    /// Gives what waits for a place something to fall back to when it gets it: what served there last.
    pub(super) fn inherit(&mut self, serving: &BTreeSet<String>) {
        for name in serving.iter().filter(|name| self.records.status(name).state == RevisionState::Conflict) {
            let before = self.roster.entries.get(name).and_then(|entry| self.served_before(name, entry));
            if let (Some(before), Some(entry)) = (before, self.roster.entries.get_mut(name)) {
                entry.predecessor = Some(before);
            }
        }
    }

    /// What served the place of a new source before: the newest revision of that place whose source went just now.
    pub(super) fn served_before(&self, name: &str, entry: &Entry) -> Option<String> {
        let place = Place::of(entry);
        let left = self.left_lately().filter(|(left, (_, other))| *left == place && *other != name);
        left.map(|(_, left)| left).max().map(|(_, name)| name.to_owned())
    }

    /// What a package would have served before it that came now, whichever place it took.
    pub(super) fn awaited(&self) -> BTreeSet<String> {
        let mut newest: BTreeMap<Place<'_>, Left<'_>> = BTreeMap::new();
        for (place, left) in self.left_lately() {
            let known = newest.entry(place).or_insert(left);
            *known = left.max(*known);
        }
        newest.into_values().map(|(_, name)| name.to_owned()).collect()
    }

    /// The places that sources left just now. What somebody took away long ago is not what served before.
    fn left_lately(&self) -> impl Iterator<Item = (Place<'_>, Left<'_>)> {
        let lately = self.tools.clock.now().checked_sub(RENAMING).ok().map(written);
        self.records.all().iter().filter_map(move |(name, revision)| {
            let status = revision.status.as_ref().filter(|status| {
                status.state == RevisionState::Superseded
                    && status.reason.as_deref() == Some("SourceDeleted")
                    && status.since >= lately
            })?;
            let entry = self.roster.entries.get(name)?;
            Some((Place::of(entry), (status.since.as_deref(), name.as_str())))
        })
    }
}
