//! Computes facts from the PolicyRevisions and the admitted revisions. These functions are pure.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kaos_crds::{PolicyRevisionStatus, PolicySource, RevisionState};

use super::transition::SOURCE_DELETED;
use crate::{
    catalogue::installed::{
        is_default,
        observed::ANOTHER_ROLLOUT,
        records::Revision,
        revision_set::{AdmittedRevision, BACK, RevisionSet},
    },
    timestamps::parsed,
};

/// A package that exists.
pub(super) struct SourceRevision<'a> {
    pub(super) source: &'a PolicySource,
    /// The name of the package's revision. `None` while the operator cannot read the package.
    pub(super) revision: Option<String>,
    /// The creation time of the package's ConfigMap.
    pub(super) created: &'a str,
    /// Whether the package is a default policy that answers without a revision, as a policy of the process. The
    /// operator keeps the PolicyRevision of the package, but plans no other actions for it.
    pub(super) is_of_process: bool,
}

/// The PolicyRevisions and the admitted revisions.
#[derive(Clone, Copy)]
pub(super) struct Facts<'a> {
    pub(super) records: &'a BTreeMap<String, Revision>,
    pub(super) revisions: &'a RevisionSet,
}

impl<'a> Facts<'a> {
    pub(super) fn status(self, name: &str) -> Option<&'a PolicyRevisionStatus> {
        self.records.get(name)?.status.as_ref()
    }

    pub(super) fn state(self, name: &str) -> RevisionState {
        self.status(name).map(|status| status.state).unwrap_or_default()
    }

    /// Returns all admitted revisions, including revisions that wait for a place because of a conflict.
    pub(super) fn serving(self) -> BTreeSet<String> {
        let is_let_in = |name: &&String| self.state(name).is_let_in();
        self.revisions.entries.keys().filter(is_let_in).cloned().collect()
    }

    /// Returns the serving revisions of a source, except the revision `name`.
    pub(super) fn others_of(self, name: &str, source: &PolicySource) -> impl Iterator<Item = &'a String> {
        let is_other =
            move |(other, entry): &(&String, &AdmittedRevision)| *other != name && self.serves(other, entry, source);
        self.revisions.entries.iter().filter(is_other).map(|(other, _)| other)
    }

    fn serves(self, name: &str, entry: &AdmittedRevision, source: &PolicySource) -> bool {
        entry.source == *source && self.state(name).is_let_in()
    }

    /// Returns the newest serving revision of a source, or `None` if no revision of the source serves.
    pub(super) fn newest_of(self, source: &PolicySource) -> Option<&'a String> {
        let serving = self.revisions.entries.iter().filter(|(name, entry)| self.serves(name, entry, source));
        serving.max_by_key(|(name, entry)| (entry.since, *name)).map(|(name, _)| name)
    }

    /// Returns the predecessor in the rollout of the revision `name`. The predecessor serves all objects that the
    /// rollout has not moved yet. Returns `None` without a rollout, and for a rollout without a predecessor.
    pub(super) fn yielding_to(self, name: &str) -> Option<&'a String> {
        let status = self.status(name).filter(|status| status.open_rollout().is_some())?;
        let predecessor = status.predecessor.as_ref().filter(|_| self.revisions.entries.contains_key(name));
        predecessor.filter(|predecessor| *predecessor != name)
    }

    /// Returns the revisions that serve the objects that rollouts have not moved yet.
    pub(super) fn yielding(self) -> BTreeSet<&'a String> {
        self.records.keys().filter_map(|by| self.yielding_to(by)).collect()
    }

    /// Returns whether a revision serves objects that a rollout has not moved yet.
    pub(super) fn yields(self, name: &str) -> bool {
        self.state(name) == RevisionState::Yielding && self.yielding().into_iter().any(|yields| yields == name)
    }

    /// Returns whether a revision is rolled out while its predecessor cannot serve. Such a revision must not go into
    /// quarantine: weaker policies would take over all its objects.
    pub(super) fn lacks_predecessor(self, name: &str) -> bool {
        let is_loaded = |before: &String| self.revisions.entries.get(before).is_some_and(|it| it.content.is_loaded());
        self.yielding_to(name).is_some_and(|before| !is_loaded(before))
    }

    /// Returns the chain of predecessors of a revision, the latest first.
    pub(super) fn before(self, name: &str) -> Vec<String> {
        let mut before: Vec<String> = Vec::new();
        while before.len() < BACK
            && let Some(status) = self.status(before.last().map_or(name, String::as_str))
            && let Some(next) = &status.predecessor
        {
            before.push(next.clone());
        }
        before
    }

    /// Returns the predecessors of quarantined revisions. Skips a quarantined revision if its source is not in
    /// `sources`, or if another revision of this source serves. The current content of the source does not matter.
    pub(super) fn held(self, sources: &BTreeSet<&PolicySource>) -> BTreeSet<String> {
        let serves = |source: &PolicySource| self.newest_of(source).is_some();
        let quarantined = self.records.iter().filter(|(name, revision)| {
            let source = &revision.spec.source;
            self.state(name) == RevisionState::Quarantined && sources.contains(source) && !serves(source)
        });
        quarantined.flat_map(|(name, _)| self.before(name)).collect()
    }

    /// Returns whether a revision is about to replace a serving revision of another ConfigMap of the same namespace.
    /// Both revisions must have the same scope and, as far as the operator knows, the same policy. Some tools cause
    /// such a replacement: they give the ConfigMap another name for each content, create the new ConfigMap, and then
    /// delete the old one.
    pub(super) fn is_successor(self, name: &str, serving: &str) -> bool {
        let (Some(new), Some(old)) = (self.records.get(name), self.records.get(serving)) else { return false };
        let (new_spec, old_spec) = (&new.spec, &old.spec);
        let (status, policy) = (new.status.as_ref(), old.status.as_ref().and_then(|status| status.policy.as_ref()));
        let is_on_its_way = match self.state(name) {
            RevisionState::Checking | RevisionState::Previewing | RevisionState::Held => true,
            RevisionState::Pending => {
                status.is_none_or(|status| status.reason.as_deref().is_none_or(|reason| reason == ANOTHER_ROLLOUT))
            }
            // This revision waits for the end of another rollout before its own rollout begins.
            RevisionState::Conflict => status.and_then(|it| it.reason.as_deref()) == Some(ANOTHER_ROLLOUT),
            _ => false,
        };
        is_on_its_way
            && new_spec.source != old_spec.source
            // The source of a default policy is never deleted, and a default policy replaces no package of a user.
            && !is_default(&new_spec.source)
            && !is_default(&old_spec.source)
            && new_spec.source.namespace == old_spec.source.namespace
            && new_spec.scope == old_spec.scope
            && new_spec.digest.is_some() == old_spec.digest.is_some()
            // The operator may not know the name of the new policy before it has checked the package.
            && status.and_then(|status| status.policy.as_ref()).is_none_or(|name| Some(name) == policy)
    }

    /// Returns the quarantined revision of a package in whose place a predecessor must serve: the revision that failed
    /// last. The package can have other content by now, which does not serve yet, or never will. Ignores the last
    /// failure in two cases. The first case is that the package's content is newer, because the predecessor already
    /// served by then. The second case is that a user deleted the package after the failure, because the predecessor
    /// must not come back. In both cases, returns the revision of the package's content if this revision is in
    /// quarantine.
    pub(super) fn failed_of(self, package: &SourceRevision<'_>) -> Option<&'a String> {
        let SourceRevision { source, revision, created, .. } = package;
        let content = revision.as_ref().and_then(|name| self.records.get_key_value(name));
        let state = content.map(|(name, _)| self.state(name));
        if state.is_some_and(RevisionState::is_let_in) {
            return None;
        }
        let own = content.filter(|_| state == Some(RevisionState::Quarantined)).map(|(name, _)| name);
        let since = |name: &String| parsed(self.status(name)?.since.as_deref());
        let quarantined = self.records.iter().filter(|(name, revision)| {
            revision.spec.source == **source && self.state(name) == RevisionState::Quarantined
        });
        let last = quarantined.max_by_key(|(name, _)| (since(name), *name)).filter(|(failed, _)| {
            let Some(failed_at) = since(failed) else { return false };
            let recorded = content.and_then(|(_, revision)| revision.metadata.creation_timestamp.as_ref());
            let is_newer = |created: Option<Timestamp>| created.is_some_and(|created| created > failed_at);
            let is_replaced = is_newer(parsed(Some(*created))) || is_newer(recorded.map(|time| time.0));
            !is_replaced && !self.was_deleted_after(failed, source, failed_at)
        });
        last.map(|(name, _)| name).or(own)
    }

    /// Returns whether a user deleted the source of a failed revision after the failure.
    fn was_deleted_after(self, failed: &str, source: &PolicySource, failed_at: Timestamp) -> bool {
        let before = self.before(failed);
        self.records.iter().any(|(name, revision)| {
            let status = revision.status.as_ref();
            let is_left = status.and_then(|status| status.reason.as_deref()) == Some(SOURCE_DELETED);
            let left_at = || status.and_then(|status| parsed(status.since.as_deref()));
            is_left && (revision.spec.source == *source || before.contains(name)) && left_at() >= Some(failed_at)
        })
    }

    /// Returns whether a revision that served before may soon serve again: it is the content of its source again, waits
    /// to be admitted, and is still loaded.
    fn is_on_its_way_back(self, name: &str, source: &PolicySource) -> bool {
        let is_waiting = matches!(
            self.state(name),
            RevisionState::Pending
                | RevisionState::Checking
                | RevisionState::Previewing
                | RevisionState::Held
                | RevisionState::NotPermitted
        );
        let entry = self.revisions.entries.get(name).filter(|entry| is_waiting && entry.source == *source);
        entry.is_some_and(|entry| entry.content.is_loaded())
    }

    /// Returns the revisions that can replace a failed revision: the revisions with other bytes that served before. The
    /// chain of predecessors of the failed revision comes first, then the other revisions of its source. In both
    /// groups, the latest revision comes first.
    fn good_before(self, name: &str) -> Vec<&'a String> {
        let Some(failed) = self.records.get(name) else { return Vec::new() };
        let is_good = |(name, revision): &(&String, &Revision)| {
            (self.state(name).is_replaced() || self.is_on_its_way_back(name, &failed.spec.source))
                && revision.spec.package_digest != failed.spec.package_digest
        };
        let before = self.before(name);
        let mut of_source: Vec<_> = self.records.iter().filter(|(other, _)| !before.contains(other)).collect();
        of_source.retain(|(_, revision)| revision.spec.source == failed.spec.source);
        of_source.sort_by_key(|(name, _)| self.status(name).and_then(|status| status.since.as_deref()));
        let before = before.iter().filter_map(|before| self.records.get_key_value(before));
        before.chain(of_source.into_iter().rev()).filter(is_good).map(|(name, _)| name).collect()
    }

    /// Returns the revision that can serve again in place of a quarantined revision. Returns `None` if another revision
    /// of the source, or a predecessor, serves already. Also returns `None` if the best revision is the content of
    /// another existing package.
    pub(super) fn to_restore(
        self,
        name: &str,
        source: &PolicySource,
        sources: &BTreeSet<&PolicySource>,
    ) -> Option<&'a String> {
        let replaces = |before: &String| self.revisions.entries.contains_key(before) && self.state(before).is_let_in();
        if self.others_of(name, source).next().is_some() || self.before(name).iter().any(replaces) {
            return None;
        }
        let best = self.good_before(name).into_iter().next()?;
        // If the best revision's own package exists, the content of that package decides whether the revision serves.
        let own = &self.records.get(best)?.spec.source;
        (own == source || !sources.contains(own)).then_some(best)
    }

    /// Returns the quarantined revision with the same bytes as the revision `name`. If a user renames a package, or
    /// deletes and recreates the package, its bytes stay in quarantine.
    pub(super) fn quarantined_as(self, name: &str) -> Option<&'a String> {
        let spec = &self.records.get(name)?.spec;
        let is_same = |(other, revision): &(&String, &Revision)| {
            *other != name
                && revision.spec.package_digest == spec.package_digest
                && revision.spec.scope == spec.scope
                && revision.spec.source.namespace == spec.source.namespace
                && is_default(&revision.spec.source) == is_default(&spec.source)
                && self.state(other) == RevisionState::Quarantined
        };
        self.records.iter().find(is_same).map(|(other, _)| other)
    }
}
