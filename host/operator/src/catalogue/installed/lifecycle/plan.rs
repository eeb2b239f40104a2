//! Plans the life of revisions: from the observed state, computes the actions that are due. This code only computes
//! actions and stores no state. So a process can end between any two actions: the next process plans the remaining
//! actions.
//!
//! This module does not plan checks of packages: `reconcile_packages` takes the next step with each package.

use std::collections::{BTreeMap, BTreeSet};

use kaos_crds::{PolicySource, RevisionState};
use tokio::time::Instant;

use super::facts::{Facts, SourceRevision};
use crate::catalogue::installed::records::RETRY;

/// Why a revision goes into quarantine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ServiceFailure {
    /// The reason that the status of the revision shows, in one word.
    pub(super) reason: &'static str,
    pub(super) why: String,
}

/// The state from which this module plans the actions.
pub(super) struct Observed<'a> {
    pub(super) facts: Facts<'a>,
    /// The packages, the oldest first.
    pub(super) packages: Vec<SourceRevision<'a>>,
    /// The names of the PolicyRevisions that a user deleted.
    pub(super) deleted: BTreeSet<&'a String>,
    /// Revisions that failed in service.
    pub(super) failed: BTreeMap<String, ServiceFailure>,
    /// Returns whether a revision can be loaded without a compilation.
    pub(super) is_compiled: &'a dyn Fn(&str) -> bool,
    /// The time of the next attempt to load or restore a revision, for each revision with a failed attempt.
    pub(super) due: &'a BTreeMap<String, Instant>,
    pub(super) now: Instant,
}

/// An action that changes the state or the PolicyRevision of a revision.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Action {
    /// Recreates the deleted PolicyRevision of a serving revision.
    Recreate(String),
    /// Forgets a deleted PolicyRevision.
    Forget(String),
    /// Creates the PolicyRevision of a package. The number is the index of the package in `packages`.
    Create(usize, String),
    /// Stops a serving revision, because another revision of its source serves now.
    Replace { name: String, by: String },
    /// Lets a revision serve only the objects that the rollout of the revision `by` has not moved yet.
    Yield { name: String, by: String },
    /// Stops a revision that yielded to its successor's rollout, because this rollout ended.
    Yielded { name: String, by: Option<String> },
    /// Stops a serving revision, because its source was deleted.
    Retire(String),
    /// Quarantines a revision that failed in service.
    Quarantine { name: String, failure: ServiceFailure },
    /// Quarantines a revision, because its bytes are in quarantine under another name.
    QuarantineAgain { name: String, known_as: String },
    /// Compiles a revision that is to serve again. The field `is_vacant` is true if no policy answers in the revision's
    /// place until the compilation ends.
    Compile { name: String, is_vacant: bool },
    /// Lets a revision serve again, in place of a quarantined revision.
    Restore { name: String, failed: String },
    /// Deletes the PolicyRevision of a revision that never served, after a user deleted its source.
    Delete(String),
}

/// Returns the actions that are due. Each action is valid alone, and the caller plans again after each action.
pub(super) fn plan(observed: &Observed<'_>) -> Vec<Action> {
    let mut actions = observed.deleted_records();
    actions.extend(observed.missing_records());
    actions.extend(observed.replacements());
    actions.extend(observed.yields());
    actions.extend(observed.known_failures());
    actions.extend(observed.restorations());
    actions.extend(observed.ended_yields());
    actions.extend(observed.retirements());
    actions.extend(observed.failures());
    actions
}

impl Observed<'_> {
    fn sources(&self) -> BTreeSet<&PolicySource> {
        self.packages.iter().map(|package| package.source).collect()
    }

    /// Returns the packages that the operator has read, each with the name of its revision. Leaves out default policies
    /// that answer as policies of the process.
    fn read(&self) -> impl Iterator<Item = (&PolicySource, &String)> {
        let lived = self.packages.iter().filter(|package| !package.is_of_process);
        lived.filter_map(|package| Some((package.source, package.revision.as_ref()?)))
    }

    /// Returns the revisions that serve, or can serve again, although their source may be gone: the predecessors of
    /// quarantined revisions, and the serving revisions that another package is about to replace.
    fn kept(&self) -> BTreeSet<String> {
        let facts = self.facts;
        let mut kept = facts.held(&self.sources());
        let succeeded = facts.records.keys().filter(|name| {
            facts.state(name) == RevisionState::Active && self.read().any(|(_, new)| facts.is_successor(new, name))
        });
        kept.extend(succeeded.cloned());
        kept
    }

    fn deleted_records(&self) -> Vec<Action> {
        let (sources, facts) = (self.sources(), self.facts);
        let kept = self.kept();
        let mut yielding = facts.yielding();
        yielding.retain(|name| facts.state(name).is_replaced());
        let serves = |name: &String| {
            let is_wanted = || facts.records.get(name).is_some_and(|it| sources.contains(&it.spec.source));
            let is_admitted = facts.state(name).is_let_in() && facts.revisions.entries.contains_key(name);
            // A revision that yields also needs its PolicyRevision, although its source has other content or was
            // deleted.
            (is_admitted && (is_wanted() || kept.contains(name))) || yielding.contains(name)
        };
        let (served, others): (Vec<&String>, Vec<&String>) =
            self.deleted.iter().copied().partition(|name| serves(name));
        let recreate = served.into_iter().map(|name| Action::Recreate(name.clone()));
        recreate.chain(others.into_iter().map(|name| Action::Forget(name.clone()))).collect()
    }

    fn missing_records(&self) -> Vec<Action> {
        let named = |(at, package): (usize, &SourceRevision<'_>)| {
            let name = package.revision.as_ref().filter(|_| !package.is_of_process)?;
            (!self.facts.records.contains_key(name)).then(|| Action::Create(at, name.clone()))
        };
        self.packages.iter().enumerate().filter_map(named).collect()
    }

    /// Returns the actions after which only one revision of each source serves.
    fn replacements(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for (source, name) in self.read() {
            let is_admitted = self.facts.state(name).is_let_in();
            let by = if is_admitted { Some(name) } else { self.facts.newest_of(source) };
            if let Some(by) = by.filter(|by| self.facts.revisions.entries.contains_key(*by)) {
                let others = self.facts.others_of(by, source);
                let yields = self.facts.yielding_to(by);
                actions.extend(others.map(|name| match yields {
                    Some(yields) if yields == name => Action::Yield { name: name.clone(), by: by.clone() },
                    _ => Action::Replace { name: name.clone(), by: by.clone() },
                }));
            }
        }
        actions
    }

    /// Returns the actions after which the predecessor of each running rollout yields, also if it comes from another
    /// ConfigMap.
    fn yields(&self) -> Vec<Action> {
        let rolled_out = self.facts.records.keys().filter_map(|by| Some((by, self.facts.yielding_to(by)?)));
        let due = rolled_out.filter(|(_, name)| self.facts.state(name) == RevisionState::Superseded);
        due.map(|(by, name)| Action::Yield { name: name.clone(), by: by.clone() }).collect()
    }

    /// Returns the actions that stop the yielding revisions whose successor's rollout has ended.
    fn ended_yields(&self) -> Vec<Action> {
        let yielding = self.facts.yielding();
        let ended = self
            .facts
            .records
            .iter()
            .filter(|(name, _)| self.facts.state(name) == RevisionState::Yielding && !yielding.contains(name));
        let ended = ended.map(|(name, revision)| Action::Yielded {
            name: name.clone(),
            by: self.facts.newest_of(&revision.spec.source).cloned(),
        });
        ended.collect()
    }

    /// Returns the actions that quarantine revisions if their bytes are already in quarantine under another name. The
    /// same bytes stay in quarantine for every ConfigMap that contains them, unless a user requests another attempt.
    fn known_failures(&self) -> Vec<Action> {
        let is_asked_for = |name: &String| {
            let annotations = self.facts.records.get(name).and_then(|it| it.metadata.annotations.as_ref());
            annotations.is_some_and(|it| it.contains_key(RETRY))
        };
        let known = |(_, name): (_, &String)| {
            let may_be = matches!(self.facts.state(name), RevisionState::Pending | RevisionState::Superseded);
            let known_as = self.facts.quarantined_as(name).filter(|_| may_be && !is_asked_for(name))?;
            Some(Action::QuarantineAgain { name: name.clone(), known_as: known_as.clone() })
        };
        self.read().filter_map(known).collect()
    }

    /// Returns the packages with a failed revision whose predecessor must serve, each with the failed revision.
    fn failed_packages(&self) -> impl Iterator<Item = (&PolicySource, &String)> {
        let lived = self.packages.iter().filter(|package| !package.is_of_process);
        lived.filter_map(|package| Some((package.source, self.facts.failed_of(package)?)))
    }

    /// Returns the actions after which the predecessors of quarantined revisions serve again.
    fn restorations(&self) -> Vec<Action> {
        let sources = self.sources();
        let mut actions = BTreeMap::new();
        for (source, failed) in self.failed_packages() {
            let Some(name) = self.facts.to_restore(failed, source, &sources) else { continue };
            if self.due.get(name).is_some_and(|due| self.now < *due) {
                continue;
            }
            actions.entry(name.clone()).or_insert_with(|| {
                if (self.is_compiled)(name) {
                    Action::Restore { name: name.clone(), failed: failed.clone() }
                } else {
                    Action::Compile { name: name.clone(), is_vacant: true }
                }
            });
        }
        actions.into_values().collect()
    }

    /// Returns the actions for revisions whose source a user deleted: a serving revision stops, and the operator
    /// deletes the PolicyRevision of a revision that never served. The predecessors of a quarantined revision stay
    /// while the source of the quarantined revision exists. A revision that another package is about to replace stays
    /// until the other package serves, or turns out to be unable to serve.
    fn retirements(&self) -> Vec<Action> {
        let (sources, kept) = (self.sources(), self.kept());
        let gone =
            self.facts.records.iter().filter(|(name, it)| !sources.contains(&it.spec.source) && !kept.contains(*name));
        let action = |(name, _): (&String, _)| match self.facts.state(name) {
            // Keep quarantined revisions: if a user adds the same bytes in another source, these bytes must stay in
            // quarantine.
            RevisionState::Yielding | RevisionState::Superseded | RevisionState::Quarantined => None,
            RevisionState::Active => Some(Action::Retire(name.clone())),
            _ => Some(Action::Delete(name.clone())),
        };
        gone.filter_map(action).collect()
    }

    /// Returns the actions that quarantine revisions because they failed in service. If a predecessor must be compiled
    /// before it can serve again, returns the compilation instead. Does not quarantine a revision during its rollout if
    /// the predecessor cannot serve.
    fn failures(&self) -> Vec<Action> {
        let (sources, facts) = (self.sources(), self.facts);
        let serving = facts.serving();
        let can_end = |name: &String| serving.contains(name) && !facts.lacks_predecessor(name);
        let failed = self.failed.iter().filter(|(name, _)| can_end(name));
        let action = |(name, failure): (&String, &ServiceFailure)| {
            let source = self.facts.records.get(name).map(|revision| &revision.spec.source);
            let source = source.filter(|source| sources.contains(source));
            let before = source.and_then(|source| self.facts.to_restore(name, source, &sources));
            match before.filter(|before| !(self.is_compiled)(before)) {
                Some(before) => Action::Compile { name: before.clone(), is_vacant: false },
                None => Action::Quarantine { name: name.clone(), failure: failure.clone() },
            }
        };
        failed.map(action).collect()
    }

    /// Returns the time of the next attempt to restore a predecessor, or `None` if no attempt is pending.
    pub(super) fn next_restoration(&self) -> Option<Instant> {
        let sources = self.sources();
        let restored =
            self.failed_packages().filter_map(|(source, name)| self.facts.to_restore(name, source, &sources));
        restored.filter_map(|name| self.due.get(name).copied()).filter(|due| *due > self.now).min()
    }
}

#[cfg(test)]
mod tests;
