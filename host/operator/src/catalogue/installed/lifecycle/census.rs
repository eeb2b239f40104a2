//! How many objects each revision serves, which records are kept, and what metrics say of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kaos_crds::{PolicySource, RevisionState};

use super::{Found, Lifecycle, StepError};

/// Revisions that are kept of a source.
const KEPT: usize = 3;

impl Lifecycle {
    /// Writes down how far the revisions that serve have come.
    pub(super) async fn count(&mut self) -> Result<(), StepError> {
        let mut states: BTreeMap<&'static str, usize> = BTreeMap::new();
        let seen = self.objects_are_seen();
        let names: Vec<String> = self.records.all().keys().cloned().collect();
        for name in &names {
            let mut status = self.records.status(name);
            *states.entry(status.state.name()).or_default() += 1;
            if status.state != RevisionState::Active {
                continue;
            }
            let (serving, failing) = self.tools.catalogue.ledger().counts(name);
            if !seen {
                continue;
            }
            let outstanding = self.concerned(name).saturating_sub(serving + failing);
            // A process that just began has counted nobody yet; what the last one wrote is nearer to the truth.
            if outstanding == 0 {
                self.counted.insert(name.clone());
            }
            if !self.counted.contains(name) {
                continue;
            }
            status.objects = Some(i64::try_from(serving).unwrap_or(i64::MAX));
            status.outstanding = Some(i64::try_from(outstanding).unwrap_or(i64::MAX));
            self.records.write(name, status).await?;
        }
        self.tools.metrics.policy_revisions(&states);
        let known: BTreeSet<Arc<str>> = names.iter().map(|name| name.as_str().into()).collect();
        self.tools.catalogue.ledger().keep(&known);
        Ok(())
    }

    /// Whether every object is known that something answers for.
    fn objects_are_seen(&self) -> bool {
        let Some(snapshot) = self.tools.catalogue.load() else { return false };
        let coverage = self.tools.watch.coverage();
        snapshot.kinds().all(|(of, _)| coverage.is_primary(of)) && self.tools.watch.synced().is_ok()
    }

    /// Removes records that nobody will ask for: of each source the newest stay, and whatever serves or would again.
    pub(super) async fn tidy(&mut self, found: &[Found]) -> Result<(), StepError> {
        let mut by_source: BTreeMap<PolicySource, Vec<(String, String)>> = BTreeMap::new();
        let mut needed: BTreeSet<String> = self.current(found);
        for (name, revision) in self.records.all() {
            let status = revision.status.clone().unwrap_or_default();
            by_source
                .entry(revision.spec.source.clone())
                .or_default()
                .push((status.since.unwrap_or_default(), name.clone()));
            if matches!(status.state, RevisionState::Active | RevisionState::Conflict | RevisionState::Quarantined) {
                needed.extend(status.predecessor);
            }
            if matches!(status.state, RevisionState::Active | RevisionState::Conflict) {
                needed.insert(name.clone());
            }
        }
        for mut of_source in by_source.into_values() {
            // Of those that came within a second, the ones that are asked for count as the newest.
            of_source.sort_by_cached_key(|(since, name)| (needed.contains(name), since.clone(), name.clone()));
            for (_, name) in of_source.iter().rev().skip(KEPT).filter(|(_, name)| !needed.contains(name)) {
                self.roster.entries.remove(name);
                self.records.delete(name).await?;
            }
        }
        Ok(())
    }
}
