//! How many objects each revision serves, which records are kept, and what metrics say of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kaos_crds::{PolicySource, RevisionState};

use super::{Found, Lifecycle, StepError};
use crate::catalogue::installed::sources::MOST;

/// Revisions that are kept of a line.
const KEPT: usize = 3;
/// Revisions of a line that are remembered as put aside, beside those.
const ASIDE: usize = 16;

/// Revisions that follow one another.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Line<'a> {
    /// What a ConfigMap held.
    Of(&'a PolicySource),
    /// What ConfigMaps held that are gone: one that is made under another name for each content, as kustomize does, goes
    /// with the next.
    Gone(&'a str, bool, &'a [String]),
    /// The same of a namespace other than the operator's, which pays for nothing that is kept here.
    Tenant(&'a str),
}

impl Lifecycle {
    /// Writes down how far the revisions that serve have come.
    pub(super) async fn count(&mut self, found: &[Found]) {
        let mut states: BTreeMap<(RevisionState, bool), usize> = BTreeMap::new();
        // What could not be read yet holds something of which nothing can be said.
        let current: BTreeSet<String> = found.iter().filter_map(|found| self.name_of(found)).collect();
        let seen = self.objects_are_seen();
        let names: Vec<String> = self.records.all().keys().cloned().collect();
        for name in &names {
            let mut status = self.records.status(name);
            *states.entry((status.state, current.contains(name))).or_default() += 1;
            if status.state != RevisionState::Active || !seen || self.loading.contains_key(name) {
                continue;
            }
            let ledger = self.tools.catalogue.ledger();
            let ((serving, _), outstanding) = (ledger.counts(name), ledger.outstanding(name, &self.concerned(name)));
            // A process that just began has counted nobody yet; what the last one wrote is nearer to the truth.
            if outstanding == 0 {
                self.counted.insert(name.clone());
            }
            if !self.counted.contains(name) {
                continue;
            }
            status.objects = Some(i64::try_from(serving).unwrap_or(i64::MAX));
            status.outstanding = Some(i64::try_from(outstanding).unwrap_or(i64::MAX));
            self.records.write_or_owe(name, status).await;
        }
        self.tools.metrics.policy_revisions(&states);
        let known: BTreeSet<Arc<str>> = names.iter().map(|name| name.as_str().into()).collect();
        self.tools.catalogue.ledger().keep(&known);
    }

    /// Whether every object is known that something answers for.
    fn objects_are_seen(&self) -> bool {
        let Some(snapshot) = self.tools.catalogue.load() else { return false };
        let coverage = self.tools.watch.coverage();
        snapshot.kinds().all(|(of, _)| coverage.is_primary(of)) && self.tools.watch.synced().is_ok()
    }

    /// Removes records that nobody will ask for: of each line the newest stay, whatever serves or would again, what must not
    /// serve again by itself, and what served before packages that may be about to come under another name.
    pub(super) async fn tidy(&mut self, found: &[Found]) -> Result<(), StepError> {
        let sources: BTreeSet<&PolicySource> = found.iter().map(|found| &found.source).collect();
        let mut lines: BTreeMap<(Line<'_>, bool), Vec<(String, String)>> = BTreeMap::new();
        let current = self.current(found);
        let mut needed: BTreeSet<String> = current.clone();
        let awaited = self.awaited();
        for (name, revision) in self.records.all() {
            let status = revision.status.clone().unwrap_or_default();
            let (serves, is_aside) = (status.state.is_let_in(), status.state == RevisionState::Quarantined);
            let (source, scope) = (&revision.spec.source, &revision.spec.scope.namespaces);
            let policy = revision.status.as_ref().and_then(|status| status.policy.as_deref()).unwrap_or_default();
            let line = if sources.contains(source) {
                Line::Of(source)
            } else if source.namespace == self.tools.duties.operator_namespace {
                Line::Gone(policy, revision.spec.digest.is_some(), scope)
            } else {
                Line::Tenant(&source.namespace)
            };
            let since = status.since.unwrap_or_default();
            lines.entry((line, is_aside)).or_default().push((since, name.clone()));
            if serves || (is_aside && current.contains(name)) {
                needed.extend(self.before(name).into_iter().take(KEPT - 1));
            }
            if serves {
                needed.insert(name.clone());
            }
        }
        // What came to nothing before its source held something else says nothing to anybody.
        let never_was = |name: &&String| {
            let state = self.records.status(name).state;
            !current.contains(*name)
                && matches!(state, RevisionState::Pending | RevisionState::Checking | RevisionState::NotPermitted)
        };
        let mut old: Vec<String> = self.records.all().keys().filter(never_was).cloned().collect();
        for ((_, are_aside), mut line) in lines {
            // Of those that came within a second, the ones that are asked for count as the newest.
            line.sort_by_cached_key(|(since, name)| (needed.contains(name), since.clone(), name.clone()));
            let newest_first = line.into_iter().rev().map(|(_, name)| name);
            let kept = if are_aside { ASIDE } else { KEPT };
            old.extend(beyond(newest_first, kept, &awaited).filter(|name| !needed.contains(name)));
        }
        self.forget_all_but(&current);
        // One that cannot be removed holds no other up: it is the others' turn first.
        old.sort_by_cached_key(|name| (Some(name) <= self.stuck.as_ref(), name.clone()));
        for name in old {
            self.roster.entries.remove(&name);
            if let Err(error) = self.records.delete(&name).await {
                // The rest is for the next round: an API server that takes its time would hold up everything else.
                self.stuck = Some(name);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Forgets what was on its way and is so no more.
    fn forget_all_but(&mut self, current: &BTreeSet<String>) {
        let records = &self.records;
        let is_known = |name: &String| current.contains(name) || records.get(name).is_some();
        // Compiled code is among it, which nobody asks for where there is no package.
        self.waiting.retain(|name, _| current.contains(name));
        self.due.retain(|name, _| is_known(name));
        self.tried_for.retain(|name, _| is_known(name));
        self.counted.retain(is_known);
        self.checking.retain(is_known);
    }
}

/// What of a line comes after the newest, of which so many are kept; of what is awaited, as many as a namespace may have
/// policies, since it could have renamed all of them.
fn beyond(
    newest_first: impl Iterator<Item = String>,
    kept: usize,
    awaited: &BTreeSet<String>,
) -> impl Iterator<Item = String> {
    let is_beyond = move |(newer, name): &(usize, String)| {
        let kept = if awaited.contains(name) { kept.max(MOST) } else { kept };
        *newer >= kept
    };
    newest_first.enumerate().filter(is_beyond).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_awaited_is_kept_as_far_as_a_namespace_could_have_renamed_it() {
        let line = || (0..20).map(|number| format!("own-{number:02}"));
        let left = |awaited: &[String]| {
            let awaited: BTreeSet<String> = awaited.iter().cloned().collect();
            let gone: BTreeSet<String> = beyond(line(), KEPT, &awaited).collect();
            line().filter(|name| !gone.contains(name)).collect::<Vec<_>>()
        };
        let all: Vec<String> = line().collect();
        assert_eq!(left(&[]), all[..KEPT]);
        assert_eq!(left(&all[7..9]), [&all[..KEPT], &all[7..9]].concat());
        assert_eq!(left(&all), all[..MOST]);
    }
}
