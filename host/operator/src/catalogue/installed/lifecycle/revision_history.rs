//! Counts the objects of each revision, deletes old PolicyRevisions, and sets the metrics.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kaos_crds::{PolicySource, RevisionState};

use super::{Found, Lifecycle, StepError, Transition, execute::end, facts::Facts, plan::Action};
use crate::catalogue::installed::{records::Revision, sources::MAX_PACKAGES};

/// The number of revisions of each [`Line`] that the operator keeps.
const KEPT: usize = 3;
/// The number of quarantined revisions of each [`Line`] that the operator keeps in addition.
const QUARANTINED_KEPT: usize = 16;

/// A sequence of revisions in which each revision replaced the previous one.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Line<'a> {
    /// Revisions of one ConfigMap.
    Of(&'a PolicySource),
    /// Revisions of deleted ConfigMaps of the operator's namespace, with the same policy and scope. Revisions with code
    /// and revisions with settings only form separate lines. The ConfigMaps of a line can have different names, because
    /// tools such as kustomize give a ConfigMap another name for each content.
    Gone(&'a str, bool, &'a [String]),
    /// Revisions of deleted ConfigMaps of one tenant. All these revisions form a single line, so that the operator
    /// limits their number: the tenant's quota does not apply to the stored bytes.
    Tenant(&'a str),
}

impl Lifecycle {
    /// Writes the number of objects of each serving revision into its PolicyRevision.
    pub(super) async fn count(&mut self, found: &[Found]) {
        let mut states: BTreeMap<(RevisionState, bool), usize> = BTreeMap::new();
        // This set lacks the packages that could not be read yet, because the names of their revisions are not known.
        let current: BTreeSet<String> = found.iter().filter_map(|found| self.name_of(found)).collect();
        let seen = self.objects_are_seen();
        let names: Vec<String> = self.records.all().keys().cloned().collect();
        for name in &names {
            let mut status = self.records.status(name);
            *states.entry((status.state, current.contains(name))).or_default() += 1;
            let serves = matches!(status.state, RevisionState::Active | RevisionState::Yielding);
            // Skip policies of the process: the ledger counts objects by revision, and these policies answer without a
            // revision.
            let is_of_process =
                || self.records.get(name).is_some_and(|it| self.defaults.is_of_process(&it.spec.source));
            if !serves || !seen || self.loading.contains_key(name) || is_of_process() {
                continue;
            }
            let ledger = self.tools.catalogue.ledger();
            let ((serving, _), outstanding) = (ledger.counts(name), ledger.outstanding(name, &self.concerned(name)));
            // A process that just started has counted only some objects. Until it has counted all of them, keep the
            // number that the previous process wrote.
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

    /// Returns whether the watches have listed every kind that a policy answers for.
    pub(super) fn objects_are_seen(&self) -> bool {
        let Some(snapshot) = self.tools.catalogue.load() else { return false };
        let coverage = self.tools.watch.coverage();
        snapshot.kinds().all(|(of, _)| coverage.is_primary(of)) && self.tools.watch.synced().is_ok()
    }

    /// Deletes PolicyRevisions that are no longer needed. After an error, stops until the next round: otherwise a slow
    /// API server would delay all other steps. The next round deletes the PolicyRevision with the error last, so that
    /// it does not delay other PolicyRevisions.
    pub(super) async fn tidy(&mut self, found: &[Found]) -> Result<(), StepError> {
        let current = self.current(found);
        self.end_attempts(&current).await;
        let history = History {
            facts: self.facts(),
            sources: found.iter().map(|found| &found.source).collect(),
            current: &current,
            awaited: self.awaited(),
            home: &self.tools.duties.operator_namespace,
        };
        let mut outdated = history.outdated();
        self.forget_all_but(&current);
        outdated.sort_by_cached_key(|name| (Some(name) <= self.stuck.as_ref(), name.clone()));
        for name in outdated {
            if let Err(error) = self.execute(Action::Delete(name.clone()), found).await {
                self.stuck = Some(name);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Ends the attempts to admit a revision again if its ConfigMap has other content now. The operator keeps the
    /// PolicyRevisions of such revisions, because they served before and can still be fallbacks.
    async fn end_attempts(&mut self, current: &BTreeSet<String>) {
        let is_left = |name: &&String| {
            let status = self.records.status(name);
            let waits = matches!(
                status.state,
                RevisionState::Pending | RevisionState::Checking | RevisionState::Previewing | RevisionState::Held
            );
            waits && status.claimed.is_some() && !current.contains(*name)
        };
        let left: Vec<String> = self.records.all().keys().filter(is_left).cloned().collect();
        for name in left {
            let message = "the revision's ConfigMap has other content";
            self.enter_or_owe(&name, Transition::new(RevisionState::Superseded, "Replaced", message), end).await;
        }
    }

    /// Forgets the state in memory of revisions that have neither a package nor a PolicyRevision.
    fn forget_all_but(&mut self, current: &BTreeSet<String>) {
        let records = &self.records;
        let is_known = |name: &String| current.contains(name) || records.get(name).is_some();
        // A waiting revision without a package cannot start to serve any more, so free its content, which includes
        // compiled code.
        self.waiting.retain(|name, _| current.contains(name));
        self.due.retain(|name, _| is_known(name));
        self.tried_for.retain(|name, _| is_known(name));
        self.counted.retain(is_known);
        self.checking.retain(is_known);
    }
}

/// The facts that decide which PolicyRevisions the operator keeps.
struct History<'a> {
    facts: Facts<'a>,
    sources: BTreeSet<&'a PolicySource>,
    /// The revisions of the packages that exist.
    current: &'a BTreeSet<String>,
    /// Revisions that become predecessors if their packages come back under another name.
    awaited: BTreeSet<String>,
    /// The operator's namespace.
    home: &'a str,
}

impl<'a> History<'a> {
    fn line_of(&self, revision: &'a Revision) -> Line<'a> {
        let (source, scope) = (&revision.spec.source, &revision.spec.scope.namespaces);
        if self.sources.contains(source) {
            Line::Of(source)
        } else if source.namespace == self.home {
            let policy = revision.status.as_ref().and_then(|status| status.policy.as_deref()).unwrap_or_default();
            Line::Gone(policy, revision.spec.digest.is_some(), scope)
        } else {
            Line::Tenant(&source.namespace)
        }
    }

    /// Returns the PolicyRevisions that are no longer needed. The operator keeps the newest PolicyRevisions of each
    /// line, and counts quarantined revisions separately. The operator also keeps the PolicyRevisions of serving
    /// revisions, of their fallbacks, and of revisions that a renamed package may need as its predecessor.
    fn outdated(&self) -> Vec<String> {
        let (facts, current) = (self.facts, self.current);
        let mut lines: BTreeMap<(Line<'_>, bool), Vec<(String, String)>> = BTreeMap::new();
        let mut needed: BTreeSet<String> = current.clone();
        for (name, revision) in facts.records {
            let state = facts.state(name);
            let (serves, is_aside) = (state.is_let_in(), state == RevisionState::Quarantined);
            let since = facts.status(name).and_then(|status| status.since.clone()).unwrap_or_default();
            lines.entry((self.line_of(revision), is_aside)).or_default().push((since, name.clone()));
            if serves || (is_aside && current.contains(name)) {
                needed.extend(facts.before(name).into_iter().take(KEPT - 1));
            }
            if serves {
                needed.insert(name.clone());
            }
        }
        // A revision that never served, and whose source now has other content, is no longer needed.
        let never_was = |name: &&String| {
            !current.contains(*name)
                && matches!(
                    facts.state(name),
                    RevisionState::Pending
                        | RevisionState::Checking
                        | RevisionState::Previewing
                        | RevisionState::Held
                        | RevisionState::NotPermitted
                )
        };
        let mut outdated: Vec<String> = facts.records.keys().filter(never_was).cloned().collect();
        for ((_, are_aside), mut line) in lines {
            // Sort the needed revisions to the end of the line, so that they count as the newest revisions.
            line.sort_by_cached_key(|(since, name)| (needed.contains(name), since.clone(), name.clone()));
            let newest_first = line.into_iter().rev().map(|(_, name)| name);
            let kept = if are_aside { QUARANTINED_KEPT } else { KEPT };
            outdated.extend(beyond(newest_first, kept, &self.awaited).filter(|name| !needed.contains(name)));
        }
        outdated
    }
}

/// Returns the revisions of a line that are older than the newest `kept` revisions. Does not return a revision in
/// `awaited` that is among the newest [`MAX_PACKAGES`] revisions of the line. This is the maximum number of packages of
/// a namespace, and a tenant may have renamed all of them.
fn beyond(
    newest_first: impl Iterator<Item = String>,
    kept: usize,
    awaited: &BTreeSet<String>,
) -> impl Iterator<Item = String> {
    let is_beyond = move |(newer, name): &(usize, String)| {
        let kept = if awaited.contains(name) { kept.max(MAX_PACKAGES) } else { kept };
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
        assert_eq!(left(&all), all[..MAX_PACKAGES]);
    }
}
