//! Decides when a revision stops serving: its source is deleted, another revision of the source replaces it, or it
//! fails in service.

use std::collections::BTreeSet;

use kaos_crds::{PolicyRevisionStatus, PolicySource, RevisionState};

use tokio::time::Instant;

use super::{
    Found, LOOK_AGAIN, Lifecycle, StepError, Transition,
    naming::others_of,
    restoring::{Loaded, age_of},
};
use crate::{
    catalogue::installed::{records::Revision, revision_set::BACK},
    watch::ObjectKey,
};

/// The reason for a quarantine.
const FAILED: &str = "FailedInService";

impl Lifecycle {
    /// Retires the revisions whose source is deleted. The last good revision before a quarantined one stays as long as
    /// the source of the quarantined one exists.
    pub(super) async fn retire(&mut self, found: &[Found]) -> Result<(), StepError> {
        let sources: BTreeSet<_> = found.iter().map(|found| &found.source).collect();
        let held = self.held(found);
        let gone: Vec<(String, RevisionState)> = self
            .records
            .all()
            .iter()
            .filter(|(name, revision)| !sources.contains(&revision.spec.source) && !held.contains(*name))
            .map(|(name, revision)| {
                (name.clone(), revision.status.as_ref().map(|status| status.state).unwrap_or_default())
            })
            .collect();
        let mut retired = Ok(());
        for (name, state) in gone {
            match state {
                // The same bytes stay in quarantine, whatever source they come from next time.
                RevisionState::Superseded | RevisionState::Quarantined => {}
                RevisionState::Active => {
                    let message = "its ConfigMap is gone, or is no policy any more";
                    let transition = Transition::new(RevisionState::Superseded, "SourceDeleted", message);
                    self.enter_or_owe(&name, transition, |_| {}).await;
                }
                _ => {
                    self.revisions.entries.remove(&name);
                    // An error here must not delay others.
                    retired = retired.and(self.records.delete(&name).await);
                }
            }
        }
        retired
    }

    /// Returns the revisions before quarantined ones. The source of the quarantined one must exist, with any content,
    /// and no revision of that source may serve.
    pub(super) fn held(&self, found: &[Found]) -> BTreeSet<String> {
        let serving = self.serving();
        let serves = |source: &PolicySource| {
            serving.iter().filter_map(|name| self.revisions.entries.get(name)).any(|entry| entry.source == *source)
        };
        let put_aside = self.records.all().iter().filter(|(_, revision)| {
            let state = revision.status.as_ref().map(|status| status.state);
            let source = &revision.spec.source;
            let is_there = || found.iter().any(|found| found.source == *source);
            state == Some(RevisionState::Quarantined) && is_there() && !serves(source)
        });
        put_aside.flat_map(|(name, _)| self.before(name)).collect()
    }

    /// Quarantines revisions that failed in service, and lets their predecessors serve again. An error with one
    /// revision does not delay the judgement of others.
    pub(super) async fn judge(&mut self, found: &[Found]) -> Result<(), StepError> {
        let failing: Vec<String> =
            self.serving().into_iter().filter(|name| self.tools.catalogue.ledger().counts(name).1 > 0).collect();
        let mut judged = Ok(());
        for name in failing {
            let book = self.tools.catalogue.ledger().book(&name);
            let Some(why) = book.verdict(&self.concerned(&name)) else { continue };
            if !self.may_be_put_aside(&name, found).await {
                continue;
            }
            tracing::error!(revision = name, why, "the policy is put aside");
            judged = judged.and(self.put_aside(&name, why, found).await);
        }
        judged
    }

    async fn put_aside(&mut self, name: &str, why: String, found: &[Found]) -> Result<(), StepError> {
        if !self.enter_or_owe(name, Transition::new(RevisionState::Quarantined, FAILED, why), |_| {}).await {
            // A user deleted the record. It is written again first.
            return Ok(());
        }
        let source = self.records.get(name).map(|revision| revision.spec.source.clone());
        match found.iter().find(|found| Some(&found.source) == source.as_ref()) {
            Some(package) => self.restore_before(name, package, found).await,
            None => Ok(()),
        }
    }

    /// Derives what follows from the states of the packages: one revision of each source serves, and the predecessor
    /// replaces a quarantined one. This is computed in each round, because an API error or the end of the process may
    /// interrupt a sequence of two writes.
    pub(super) async fn follow_up(&mut self, found: &[Found]) -> Result<(), StepError> {
        let mut followed_up = Ok(());
        for package in found {
            // A package that could not be read changes nothing.
            let Some(name) = self.name_of(package) else { continue };
            let state = self.records.status(&name).state;
            let keeps = if state.is_let_in() { Some(name.clone()) } else { self.newest_of(package) };
            if let Some(keeps) = keeps {
                self.replace_others(&keeps, package).await;
            }
            if state == RevisionState::Quarantined {
                followed_up = followed_up.and(self.restore_before(&name, package, found).await);
            }
        }
        followed_up
    }

    /// Returns the newest serving revision of a source.
    fn newest_of(&self, package: &Found) -> Option<String> {
        let serving = self.serving();
        let of_source = serving.iter().filter_map(|name| {
            let entry = self.revisions.entries.get(name)?;
            (entry.source == package.source).then_some((entry.since, name))
        });
        of_source.max().map(|(_, name)| name.clone())
    }

    /// Ends the service of all other revisions of the same source.
    pub(super) async fn replace_others(&mut self, name: &str, package: &Found) {
        if !self.revisions.entries.contains_key(name) {
            return;
        }
        let serving = self.serving();
        let others: Vec<String> = others_of(&self.revisions, &serving, name, package).cloned().collect();
        for other in others {
            let message = format!("{name} serves in its place");
            self.enter_or_owe(&other, Transition::new(RevisionState::Superseded, "Replaced", message), |_| {}).await;
        }
    }

    /// Returns whether the revision that would replace this one can be loaded at once. If not, it is compiled in the
    /// background, and the failing revision serves until then.
    async fn may_be_put_aside(&mut self, name: &str, found: &[Found]) -> bool {
        let source = self.records.get(name).map(|revision| &revision.spec.source);
        let Some(package) = found.iter().find(|found| Some(&found.source) == source) else { return true };
        let Some(before) = self.to_restore(name, package, found).into_iter().next() else { return true };
        self.is_compiled_to_restore(&before, false, found).await
    }

    /// Returns the revisions that may serve again after a quarantined one, the best first. Returns none if a revision
    /// serves already, or if another package decides about it.
    fn to_restore(&self, name: &str, package: &Found, found: &[Found]) -> Vec<Revision> {
        let serving = self.serving();
        let stands_in = |before: &String| serving.contains(before);
        if others_of(&self.revisions, &serving, name, package).next().is_some()
            || self.before(name).iter().any(stands_in)
        {
            return Vec::new();
        }
        // If a revision has a package of its own again, that package decides about it.
        let is_decided = |before: &Revision| {
            found.iter().any(|other| other.source == before.spec.source && other.source != package.source)
        };
        self.good_before(name).into_iter().take_while(|before| !is_decided(before)).collect()
    }

    async fn is_compiled_to_restore(&mut self, before: &Revision, is_alone: bool, found: &[Found]) -> bool {
        let name = before.metadata.name.clone().unwrap_or_default();
        let is_compiled = self.is_compiled(&name, before, found).await;
        if !is_compiled {
            if is_alone {
                self.hold_open(before, found);
            }
            self.restoring.insert(name, is_alone);
        }
        is_compiled
    }

    /// Lets the predecessor of a quarantined revision serve again, unless one serves already.
    async fn restore_before(&mut self, name: &str, package: &Found, found: &[Found]) -> Result<(), StepError> {
        for before in self.to_restore(name, package, found) {
            let restored = before.metadata.name.clone().unwrap_or_default();
            if self.due.get(&restored).is_some_and(|due| Instant::now() < *due) {
                let (what, message) =
                    (format!("load PolicyRevision {restored}"), "it is tried again in a while".to_owned());
                return Err(StepError { what, message, is_answered: true });
            }
            if !self.is_compiled_to_restore(&before, true, found).await {
                // The end of the compilation starts a new round.
                return Ok(());
            }
            let was_open = self.is_held_open(&restored);
            match self.reload(&before, found).await? {
                // Another thing answers now, although the same revisions serve.
                Loaded::Serves if was_open => {
                    self.installed = None;
                    self.wake_settings(&before.spec.source.namespace);
                }
                Loaded::Serves => {}
                // What served before that may still be there.
                Loaded::Never | Loaded::Withheld => {
                    if self.is_held_open(&restored) {
                        self.revisions.entries.remove(&restored);
                    }
                    continue;
                }
                Loaded::NotYet(error) => {
                    self.due.insert(restored, Instant::now() + LOOK_AGAIN);
                    return Err(error);
                }
            }
            let claimed = self.claim_of(name, &restored, found);
            let message = format!("{name} failed in service");
            let transition = Transition::new(RevisionState::Active, "Restored", message);
            self.enter_or_owe(&restored, transition, |status| status.claimed = claimed).await;
            return Ok(());
        }
        Ok(())
    }

    /// Gives a restored predecessor the claim of the failed revision, whatever its own source is: it serves as long as
    /// the failed package exists. Returns the time of the claim, as the record keeps it.
    fn claim_of(&mut self, failed: &str, restored: &str, found: &[Found]) -> Option<String> {
        let age = age_of(self.records.get(failed)?, found);
        let (mut serving, waiting) = (self.serving(), self.waiting_for_a_place());
        serving.insert(restored.to_owned());
        let earlier = age.claimed;
        self.revisions.entries.get_mut(restored)?.age = age;
        self.revisions.claim(restored, earlier, &serving, &waiting, self.tools.clock.now());
        self.revisions.claimed(&[restored.to_owned()]).map(|claimed| claimed.to_string())
    }

    /// Returns the chain of predecessors of a revision, the latest first.
    pub(super) fn before(&self, name: &str) -> Vec<String> {
        let mut before: Vec<String> = Vec::new();
        while before.len() < BACK
            && let Some(next) = self.records.status(before.last().map_or(name, String::as_str)).predecessor
        {
            before.push(next);
        }
        before
    }

    /// Returns the good predecessors of a revision: superseded ones with other bytes. First come its predecessors, then
    /// the other revisions of its source, the latest first.
    fn good_before(&self, name: &str) -> Vec<Revision> {
        let Some(failed) = self.records.get(name).map(|revision| &revision.spec) else { return Vec::new() };
        let is_good = |revision: &&Revision| {
            let state = revision.status.as_ref().map(|status| status.state);
            state == Some(RevisionState::Superseded) && revision.spec.package_digest != failed.package_digest
        };
        let before = self.before(name);
        let is_other = |revision: &&Revision| revision.metadata.name.as_ref().is_none_or(|name| !before.contains(name));
        let all = self.records.all().values().filter(|revision| revision.spec.source == failed.source);
        let mut of_source: Vec<&Revision> = all.filter(is_other).collect();
        of_source.sort_by_key(|revision| revision.status.as_ref().and_then(|status| status.since.as_deref()));
        let before = before.iter().filter_map(|before| self.records.get(before));
        before.chain(of_source.into_iter().rev()).filter(is_good).cloned().collect()
    }

    /// Returns the quarantined revision with the same bytes as this one. A package with another name, or one that was
    /// deleted and created again, is still the same package.
    pub(super) fn put_aside_as(&self, name: &str) -> Option<&Revision> {
        let spec = &self.records.get(name)?.spec;
        let same = |(other, revision): &(&String, &Revision)| {
            other.as_str() != name
                && revision.spec.package_digest == spec.package_digest
                && revision.spec.scope == spec.scope
                && revision.spec.source.namespace == spec.source.namespace
                && revision.status.as_ref().is_some_and(|status| status.state == RevisionState::Quarantined)
        };
        self.records.all().iter().find(same).map(|(_, revision)| revision)
    }

    /// Quarantines a revision whose bytes are in quarantine under another name.
    pub(super) async fn put_aside_again(&mut self, name: &str) {
        let Some(other) = self.put_aside_as(name) else { return };
        let status = other.status.clone().unwrap_or_default();
        let message = format!(
            "the same package failed in service as {}: {}",
            other.metadata.name.as_deref().unwrap_or_default(),
            status.message.unwrap_or_default()
        );
        let put_aside = |now: &mut PolicyRevisionStatus| {
            (now.policy, now.version, now.kinds) = (status.policy, status.version, status.kinds);
            now.predecessor = status.predecessor;
        };
        self.enter_or_owe(name, Transition::new(RevisionState::Quarantined, FAILED, message), put_aside).await;
        self.waiting.remove(name);
    }

    /// Returns the objects that a revision is for. Returns none if objects pin it.
    pub(super) fn concerned(&self, name: &str) -> Vec<ObjectKey> {
        let Some(snapshot) = self.tools.catalogue.load() else { return Vec::new() };
        let choosing = self.tools.catalogue.ledger().choosing();
        let mut concerned = Vec::new();
        for (of, answers) in snapshot.kinds() {
            if !answers.revisions().any(|revision| &**revision == name) {
                continue;
            }
            let answers_for = |key: &ObjectKey| {
                answers.usual(&key.namespace).is_some_and(|kind| kind.revisions().any(|revision| &**revision == name))
            };
            let keys = self.tools.watch.keys(of).into_iter();
            concerned.extend(keys.filter(|key| answers_for(key) && !choosing.contains(key)));
        }
        concerned
    }
}
