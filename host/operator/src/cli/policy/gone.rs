//! Deletes the records of removed policies before a user uninstalls the operator for good.
//!
//! These records stay:
//!
//! - Revisions whose ConfigMaps exist, and their predecessors: a later operator uses these records to serve the same
//!   policies.
//! - Quarantined revisions: if a user installs the same content again, the content stays in quarantine.
//! - Revisions from namespaces outside the given scope.

use std::collections::BTreeSet;

use kaos_crds::{PolicySource, RevisionState};
use kube::Client;

use super::revisions::{Revision, Revisions, name, state, status};
use crate::watch::Scope;

/// Deletes the records of removed policies, if their sources are in the namespaces of a scope. With `dry_run`, deletes
/// nothing. Returns the names of the deleted records.
pub(in crate::cli) async fn forget_gone(
    client: Client,
    namespace: &str,
    meant: &Scope,
    dry_run: bool,
) -> anyhow::Result<Vec<String>> {
    let revisions = Revisions::new(client, namespace);
    let all = revisions.all().await?;
    let sources: BTreeSet<&PolicySource> = all.iter().map(|revision| &revision.spec.source).collect();
    let mut there = BTreeSet::new();
    for source in sources {
        // Treat a source outside the scope as existing, so that the command keeps the source's revisions and their
        // predecessors.
        if !meant.holds(&source.namespace) || revisions.is_there(source).await? {
            there.insert(source);
        }
    }
    let mut forgotten = Vec::new();
    for revision in gone(&all, |source| there.contains(source)) {
        // Keep a record that changed after the command read it, because another client still uses the record.
        if dry_run || revisions.remove(revision).await? {
            forgotten.push(name(revision).to_owned());
        }
    }
    Ok(forgotten)
}

/// Returns the records to delete: all records except the needed records and the records of quarantined revisions.
fn gone(all: &[Revision], is_there: impl Fn(&PolicySource) -> bool) -> Vec<&Revision> {
    let needed = needed(all, is_there);
    let goes = |revision: &&Revision| !needed.contains(name(revision)) && state(revision) != RevisionState::Quarantined;
    all.iter().filter(goes).collect()
}

/// Returns the names of revisions with an existing source, and of all their predecessors.
pub(super) fn needed(all: &[Revision], is_there: impl Fn(&PolicySource) -> bool) -> BTreeSet<String> {
    let stands = |revision: &&Revision| is_there(&revision.spec.source);
    let mut needed: BTreeSet<String> = BTreeSet::new();
    let mut next: Vec<String> = all.iter().filter(stands).map(|revision| name(revision).to_owned()).collect();
    while let Some(one) = next.pop() {
        if let Some(revision) = all.iter().find(|revision| name(revision) == one)
            && needed.insert(one)
        {
            next.extend(status(revision).predecessor);
        }
    }
    needed
}

#[cfg(test)]
mod tests {
    use kaos_crds::{PolicyRevisionSpec, PolicyRevisionStatus};

    use super::*;
    use crate::catalogue::installed::revision_resource;

    fn revision(name: &str, source: &str, state: RevisionState, predecessor: Option<&str>) -> Revision {
        let source = PolicySource { namespace: "home".to_owned(), config_map: source.to_owned() };
        let mut revision =
            Revision::new(name, &revision_resource(), PolicyRevisionSpec { source, ..PolicyRevisionSpec::default() });
        let predecessor = predecessor.map(str::to_owned);
        revision.status = Some(PolicyRevisionStatus { state, predecessor, ..PolicyRevisionStatus::default() });
        revision
    }

    #[test]
    fn unused_records_are_deleted_except_quarantined_ones_and_fallbacks() {
        use RevisionState::{Active, Quarantined, Refused, Superseded};
        let all = [
            revision("serves", "there", Active, Some("before")),
            revision("refused", "there", Refused, None),
            revision("before", "renamed", Superseded, Some("long-before")),
            revision("long-before", "renamed-too", Superseded, None),
            revision("aside", "gone", Quarantined, Some("before-that")),
            revision("before-that", "gone", Superseded, None),
            revision("served", "gone", Active, Some("never-there")),
        ];
        let names = |gone: Vec<&Revision>| gone.into_iter().map(|it| name(it).to_owned()).collect::<Vec<_>>();
        assert_eq!(names(gone(&all, |source| source.config_map == "there")), ["before-that", "served"]);
        assert_eq!(names(gone(&all, |_| true)), [""; 0]);
    }
}
