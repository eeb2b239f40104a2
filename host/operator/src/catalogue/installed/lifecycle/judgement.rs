//! When a revision stops serving: its source goes, another one comes from there, or it fails in service.

use std::collections::BTreeSet;

use kaos_crds::{PolicyRevisionStatus, PolicySource, RevisionState};

use tokio::time::Instant;

use super::{
    Found, LOOK_AGAIN, Lifecycle, StepError, Turn,
    naming::others_of,
    restoring::{Loaded, age_of},
};
use crate::{
    catalogue::installed::{records::Revision, roster::BACK},
    watch::ObjectKey,
};

/// Why a revision is put aside.
const FAILED: &str = "FailedInService";

impl Lifecycle {
    /// What came from sources that are gone serves no longer. The last good revision of one that was put aside stays for
    /// as long as that one's source does.
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
                // The same bytes stay put aside, wherever they come from the next time.
                RevisionState::Superseded | RevisionState::Quarantined => {}
                RevisionState::Active => {
                    let message = "its ConfigMap is gone, or is no policy any more";
                    let turn = Turn::new(RevisionState::Superseded, "SourceDeleted", message);
                    self.enter_or_owe(&name, turn, |_| {}).await;
                }
                _ => {
                    self.roster.entries.remove(&name);
                    // What cannot be removed now holds no other up.
                    retired = retired.and(self.records.delete(&name).await);
                }
            }
        }
        retired
    }

    /// The revisions before those that were put aside, as long as these have a source of which nothing itself serves,
    /// whatever it holds now.
    pub(super) fn held(&self, found: &[Found]) -> BTreeSet<String> {
        let serving = self.serving();
        let serves = |source: &PolicySource| {
            serving.iter().filter_map(|name| self.roster.entries.get(name)).any(|entry| entry.source == *source)
        };
        let put_aside = self.records.all().iter().filter(|(_, revision)| {
            let state = revision.status.as_ref().map(|status| status.state);
            let source = &revision.spec.source;
            let is_there = || found.iter().any(|found| found.source == *source);
            state == Some(RevisionState::Quarantined) && is_there() && !serves(source)
        });
        put_aside.flat_map(|(name, _)| self.before(name)).collect()
    }

    /// Puts aside what failed in service, and lets what served before serve again. What that cannot be done for now keeps
    /// nobody from being judged.
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
        if !self.enter_or_owe(name, Turn::new(RevisionState::Quarantined, FAILED, why), |_| {}).await {
            // Somebody deleted its record: it is written again first.
            return Ok(());
        }
        let source = self.records.get(name).map(|revision| revision.spec.source.clone());
        match found.iter().find(|found| Some(&found.source) == source.as_ref()) {
            Some(package) => self.restore_before(name, package, found).await,
            None => Ok(()),
        }
    }

    /// What follows from the states of the packages that there are: of one source one revision serves, and in the stead of
    /// one that was put aside the one before it. Derived each time, since the API server, or the end of the process, may
    /// come between two states that are written down one after the other.
    pub(super) async fn follow_up(&mut self, found: &[Found]) -> Result<(), StepError> {
        let mut followed_up = Ok(());
        for package in found {
            // What could not be read decides nothing.
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

    /// The newest of the revisions of a source that serve.
    fn newest_of(&self, package: &Found) -> Option<String> {
        let serving = self.serving();
        let of_source = serving.iter().filter_map(|name| {
            let entry = self.roster.entries.get(name)?;
            (entry.source == package.source).then_some((entry.since, name))
        });
        of_source.max().map(|(_, name)| name.clone())
    }

    /// Whatever else of a source serves does so no longer.
    pub(super) async fn replace_others(&mut self, name: &str, package: &Found) {
        if !self.roster.entries.contains_key(name) {
            return;
        }
        let serving = self.serving();
        let others: Vec<String> = others_of(&self.roster, &serving, name, package).cloned().collect();
        for other in others {
            let message = format!("{name} serves in its place");
            self.enter_or_owe(&other, Turn::new(RevisionState::Superseded, "Replaced", message), |_| {}).await;
        }
    }

    /// Whether what would serve again in place of a revision can be loaded at once. If not, it is compiled beside everything
    /// else, and until then the revision goes on.
    async fn may_be_put_aside(&mut self, name: &str, found: &[Found]) -> bool {
        let source = self.records.get(name).map(|revision| &revision.spec.source);
        let Some(package) = found.iter().find(|found| Some(&found.source) == source) else { return true };
        let Some(before) = self.to_restore(name, package, found).into_iter().next() else { return true };
        self.is_compiled_to_restore(&before, false, found).await
    }

    /// What may serve again after a revision that is put aside, the best first; nothing if something serves already or
    /// another package decides about it.
    fn to_restore(&self, name: &str, package: &Found, found: &[Found]) -> Vec<Revision> {
        let serving = self.serving();
        let stands_in = |before: &String| serving.contains(before);
        if others_of(&self.roster, &serving, name, package).next().is_some() || self.before(name).iter().any(stands_in)
        {
            return Vec::new();
        }
        // One that has a package of its own again is decided about by that.
        let is_decided = |before: &Revision| {
            found.iter().any(|other| other.source == before.spec.source && other.source != package.source)
        };
        self.good_before(name).into_iter().take_while(|before| !is_decided(before)).collect()
    }

    async fn is_compiled_to_restore(&mut self, before: &Revision, is_alone: bool, found: &[Found]) -> bool {
        let name = before.metadata.name.clone().unwrap_or_default();
        let is_compiled = self.is_compiled(&name, before, found).await;
        if !is_compiled {
            self.restoring.insert(name, is_alone);
        }
        is_compiled
    }

    /// Lets what served before a revision that was put aside serve again, unless something does so already.
    async fn restore_before(&mut self, name: &str, package: &Found, found: &[Found]) -> Result<(), StepError> {
        for before in self.to_restore(name, package, found) {
            let restored = before.metadata.name.clone().unwrap_or_default();
            if self.due.get(&restored).is_some_and(|due| Instant::now() < *due) {
                let (what, message) =
                    (format!("load PolicyRevision {restored}"), "it is tried again in a while".to_owned());
                return Err(StepError { what, message, is_answered: true });
            }
            if !self.is_compiled_to_restore(&before, true, found).await {
                // Its end is told.
                return Ok(());
            }
            match self.reload(&before, found).await? {
                Loaded::Serves => {}
                // What served before that may still be there.
                Loaded::Never | Loaded::Withheld => continue,
                Loaded::NotYet(error) => {
                    self.due.insert(restored, Instant::now() + LOOK_AGAIN);
                    return Err(error);
                }
            }
            let claimed = self.claim_of(name, &restored, found);
            let message = format!("{name} failed in service");
            let turn = Turn::new(RevisionState::Active, "Restored", message);
            self.enter_or_owe(&restored, turn, |status| status.claimed = claimed).await;
            return Ok(());
        }
        Ok(())
    }

    /// Has what served before a revision go on with the claim of that, whatever it came from itself: it is there for as long
    /// as the package is that failed. Gives since when it claims its place, as it is written down.
    fn claim_of(&mut self, failed: &str, restored: &str, found: &[Found]) -> Option<String> {
        let age = age_of(self.records.get(failed)?, found);
        let (mut serving, waiting) = (self.serving(), self.waiting_for_a_place());
        serving.insert(restored.to_owned());
        let earlier = age.claimed;
        self.roster.entries.get_mut(restored)?.age = age;
        self.roster.claim(restored, earlier, &serving, &waiting, self.tools.clock.now());
        self.roster.claimed(&[restored.to_owned()]).map(|claimed| claimed.to_string())
    }

    /// The revisions before one, the last first.
    pub(super) fn before(&self, name: &str) -> Vec<String> {
        let mut before: Vec<String> = Vec::new();
        while before.len() < BACK
            && let Some(next) = self.records.status(before.last().map_or(name, String::as_str)).predecessor
        {
            before.push(next);
        }
        before
    }

    /// What served before a revision and was not put aside itself, of other bytes: what it came after, and then what else its
    /// source had, the last first.
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

    /// The revision under which the bytes of another one were put aside: a package that comes under another name, or again
    /// after it was deleted, is no other package.
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

    /// Puts aside what was put aside under another name.
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
        self.enter_or_owe(name, Turn::new(RevisionState::Quarantined, FAILED, message), put_aside).await;
        self.waiting.remove(name);
    }

    /// The objects that a revision is there for; none where objects choose it.
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
