//! When a revision stops serving: its source goes, or it fails in service.

use std::collections::BTreeSet;

use kaos_crds::RevisionState;

use super::{Found, Lifecycle, StepError, Turn};
use crate::watch::ObjectKey;

impl Lifecycle {
    /// What came from sources that are gone serves no longer. The last good revision of one that was put aside stays for
    /// as long as that one's source does.
    pub(super) async fn retire(&mut self, found: &[Found]) -> Result<(), StepError> {
        let current = self.current(found);
        let sources: BTreeSet<_> = found.iter().map(|found| &found.source).collect();
        let held: BTreeSet<String> = current
            .iter()
            .map(|name| self.records.status(name))
            .filter(|status| status.state == RevisionState::Quarantined)
            .filter_map(|status| status.predecessor)
            .collect();
        let gone: Vec<(String, RevisionState)> = self
            .records
            .all()
            .iter()
            .filter(|(name, revision)| !sources.contains(&revision.spec.source) && !held.contains(*name))
            .map(|(name, revision)| {
                (name.clone(), revision.status.as_ref().map(|status| status.state).unwrap_or_default())
            })
            .collect();
        for (name, state) in gone {
            match state {
                RevisionState::Superseded => {}
                RevisionState::Active => {
                    let message = "its ConfigMap is gone, or is no policy any more";
                    self.enter(&name, Turn::new(RevisionState::Superseded, "SourceDeleted", message), |_| {}).await?;
                }
                _ => {
                    self.roster.entries.remove(&name);
                    self.records.delete(&name).await?;
                }
            }
        }
        Ok(())
    }

    /// Puts aside what failed in service, and lets what served before serve again.
    pub(super) async fn judge(&mut self, found: &[Found]) -> Result<(), StepError> {
        let failing: Vec<String> =
            self.serving().into_iter().filter(|name| self.tools.catalogue.ledger().counts(name).1 > 0).collect();
        for name in failing {
            let book = self.tools.catalogue.ledger().book(&name);
            let Some(why) = book.verdict(self.concerned(&name)) else { continue };
            let before = self.roster.entries.get(&name).and_then(|entry| entry.predecessor.clone());
            let restored = match before.and_then(|before| self.records.get(&before).cloned()) {
                Some(before) if self.reload(&before, found).await? => before.metadata.name,
                _ => None,
            };
            tracing::error!(revision = name, why, "the policy is put aside");
            self.enter(&name, Turn::new(RevisionState::Quarantined, "FailedInService", why), |_| {}).await?;
            if let Some(restored) = restored {
                let message = format!("{name} failed in service");
                self.enter(&restored, Turn::new(RevisionState::Active, "Restored", message), |_| {}).await?;
            }
        }
        Ok(())
    }

    /// How many objects a revision is there for.
    pub(super) fn concerned(&self, name: &str) -> usize {
        let Some(snapshot) = self.tools.catalogue.load() else { return 0 };
        let mut concerned = 0;
        for (of, answers) in snapshot.kinds() {
            if !answers.revisions().any(|revision| &**revision == name) {
                continue;
            }
            let answers_for = |key: &ObjectKey| {
                answers.usual(&key.namespace).is_some_and(|kind| kind.revisions().any(|revision| &**revision == name))
            };
            concerned += self.tools.watch.keys(of).iter().filter(|key| answers_for(key)).count();
        }
        concerned
    }
}
