//! Loads the policies of tenants that an earlier process admitted. The operator loads these policies in the background,
//! because each policy may take some time. Until such a policy is loaded, no policy answers in its place: the operator
//! does not change the children or the status of the objects there.
//!
//! Some errors are temporary: for example, the compile child was killed because memory was short, or got no processor.
//! After such an error, the operator tries again later.

use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

use kaos_crds::{PolicyRevisionSpec, PolicySource, RevisionState};
use kaos_policy::{manifest::OnRefusal, rollout::Rollout};
use tokio::time::Instant;

use super::{
    Found, LOOK_AGAIN, Lifecycle, StepError, Transition,
    restoring::{LoadResult, age_of},
};
use crate::{
    catalogue::{
        Loading, Reach,
        installed::{
            background::Stand,
            records::{NOT_LOADED, Revision, kinds_of},
            revision_set::{AdmittedRevision, Content, moved_objects},
        },
    },
    timestamps::parsed,
};

impl Lifecycle {
    /// If the revision is a policy of a tenant, schedules its load in the background: first the revisions that can be
    /// its fallback, then the policy itself. Returns whether the revision is such a policy.
    pub(super) fn load_beside(&mut self, revision: &Revision, found: &[Found]) -> bool {
        if !self.is_local_policy(revision) {
            return false;
        }
        let name = revision.metadata.name.clone().unwrap_or_default();
        if !self.loading.contains_key(&name) {
            let mut left: VecDeque<String> = self.facts().before(&name).into_iter().rev().collect();
            left.push_back(name.clone());
            self.revisions.entries.insert(name.clone(), unloaded(revision, found));
            self.loading.insert(name, left);
        }
        true
    }

    /// While the operator compiles a tenant's policy that is to serve again, lets no other policy answer in the place
    /// of this policy.
    pub(super) fn hold_open(&mut self, revision: &Revision, found: &[Found]) {
        let name = revision.metadata.name.clone().unwrap_or_default();
        if self.is_local_policy(revision) && !self.is_held_open(&name) {
            self.revisions.entries.insert(name, unloaded(revision, found));
        }
    }

    /// Returns whether no policy answers in the place of this revision until the revision serves again.
    pub(super) fn is_held_open(&self, name: &str) -> bool {
        let entry = self.revisions.entries.get(name);
        entry.is_some_and(|it| matches!((&it.reach, &it.content), (Reach::Own(_), Content::Unloaded(..))))
    }

    /// Returns the revisions that are being restored while no policy answers in their places.
    pub(super) fn held_open(&self) -> impl Iterator<Item = &String> {
        let alone = self.restoring.iter().filter(|(_, is_alone)| **is_alone).map(|(name, _)| name);
        alone.filter(|name| self.is_held_open(name))
    }

    /// Returns whether a revision contains a component and comes from a namespace other than the operator's.
    pub(super) fn is_local_policy(&self, revision: &Revision) -> bool {
        let PolicyRevisionSpec { source, digest, .. } = &revision.spec;
        source.namespace != self.tools.duties.operator_namespace && digest.is_some()
    }

    /// Forgets revisions that were replaced or retired while they were being loaded.
    pub(super) fn forget_what_loads_no_more(&mut self) {
        let (serving, entries) = (self.facts().serving(), &self.revisions.entries);
        let is_unloaded =
            |name: &str| entries.get(name).is_some_and(|entry| matches!(entry.content, Content::Unloaded(..)));
        self.loading.retain(|name, _| serving.contains(name) && is_unloaded(name));
    }

    /// Returns whether a new package must wait for policies that served before this process started and are being
    /// loaded. The package waits for the policies of its own namespace, unless the package replaces one of these
    /// policies. The package also waits for the policies of other namespaces that had fewer turns so far. If the
    /// package replaces no policy, it also waits for namespaces that had the same number of turns.
    pub(super) fn waits_for_loading(&self, source: &PolicySource) -> bool {
        if source.namespace == self.tools.duties.operator_namespace {
            return false;
        }
        let loading = || self.loading.keys().filter_map(|name| Some(&self.revisions.entries.get(name)?.source));
        let (replaces, had) = (loading().any(|it| it == source), self.fairness.had(&source.namespace));
        loading().any(|it| match (self.fairness.had(&it.namespace), it.namespace == source.namespace) {
            (_, true) => !replaces,
            (before, false) if replaces => before < had,
            (before, false) => before <= had,
        })
    }

    /// Returns the places of the revisions that are being loaded.
    pub(super) fn loading_places(&self, serving: &BTreeSet<String>) -> Loading {
        let mut places = Loading::new();
        let loading = self.loading.keys().chain(self.held_open()).filter(|name| serving.contains(*name));
        for entry in loading.filter_map(|name| self.revisions.entries.get(name)) {
            let Content::Unloaded(policy, kinds, _) = &entry.content else { continue };
            for of in kinds {
                let place = places.entry(of.clone()).or_default().entry(entry.source.namespace.clone()).or_default();
                if entry.pinned {
                    place.named.insert(policy.clone());
                } else {
                    place.is_usual = true;
                }
            }
        }
        places
    }

    /// If a tenant's policy could not be loaded, lets no policy answer in its place until the operator can load it.
    /// Other places do not wait. For any other revision, returns the error, so that nothing serves before the revision
    /// is loaded.
    pub(super) async fn put_off(
        &mut self,
        revision: &Revision,
        found: &[Found],
        error: StepError,
    ) -> Result<(), StepError> {
        if !self.is_local_policy(revision) {
            return Err(error);
        }
        let name = revision.metadata.name.clone().unwrap_or_default();
        tracing::warn!(revision = name, %error, "revision cannot be loaded yet; no policy answers instead");
        let serves = revision.status.as_ref().is_some_and(|status| status.state == RevisionState::Active);
        let entry = unloaded(revision, found);
        self.revisions.entries.insert(name.clone(), entry);
        self.due.insert(name.clone(), Instant::now() + LOOK_AGAIN);
        if serves {
            let message = format!(
                "no policy answers for the objects of this revision until the operator loads it: {}",
                error.message
            );
            self.enter_or_owe(&name, Transition::new(RevisionState::Active, NOT_LOADED, message), |_| {}).await;
        }
        Ok(())
    }

    /// Loads the next revision that is due. This is a revision in the field `loading`, a revision whose last attempt
    /// failed, or a lost revision to load again. Returns the delay until the next revision is due, or `None` if no
    /// revision must be loaded.
    pub(super) async fn load_late(&mut self, found: &[Found]) -> Option<Duration> {
        let loads = !self.loading.is_empty();
        if let Some((due, name)) = self.next_unloaded(found)
            && due <= Instant::now()
            && let Some(revision) = self.records.get(&name).cloned()
        {
            let is_beside = self.is_local_policy(&revision);
            let is_ready = self.loads_before(&name, found).await;
            if !is_ready || (is_beside && !self.is_compiled(&name, &revision, found).await) {
                return None;
            }
            self.due.remove(&name);
            self.tried_for.insert(name.clone(), self.asked(&name));
            self.load_one(&name, &revision, found).await;
            if self.wake_settings(&revision.spec.source.namespace) {
                return Some(Duration::ZERO);
            }
        }
        if loads && self.loading.is_empty() {
            // All policies are loaded now. Start a round at once for the new packages that waited for these policies.
            return Some(Duration::ZERO);
        }
        self.next_unloaded(found).map(|(due, _)| due.saturating_duration_since(Instant::now()))
    }

    async fn load_one(&mut self, name: &str, revision: &Revision, found: &[Found]) {
        let is_first = self.loading.remove(name).is_some();
        match self.load_again(revision, found).await {
            // Swap again, because other policies answer now, although the same revisions serve.
            Ok(LoadResult::Serves | LoadResult::Withheld) => self.swap_again(),
            Ok(LoadResult::Never) => drop(self.revisions.entries.remove(name)),
            Err(error) | Ok(LoadResult::NotYet(error)) if is_first => {
                self.swap_again();
                if let Err(error) = self.put_off(revision, found, error).await {
                    tracing::warn!(revision = name, %error, "revision cannot be loaded yet");
                }
            }
            Err(error) | Ok(LoadResult::NotYet(error)) => {
                tracing::warn!(revision = name, %error, "revision cannot be loaded yet; retrying");
                let entry = self.revisions.entries.get_mut(name);
                if let Some(wait) = entry.and_then(|entry| entry.content.failed_again()) {
                    self.due.insert(name.to_owned(), Instant::now() + wait);
                }
            }
        }
    }

    /// Loads the possible fallbacks of a revision that is being loaded. Returns whether all of these fallbacks are
    /// loaded.
    async fn loads_before(&mut self, name: &str, found: &[Found]) -> bool {
        let next = |this: &Self| this.loading.get(name).and_then(VecDeque::front).filter(|it| *it != name).cloned();
        while let Some(before) = next(self) {
            if let Some(revision) = self.records.get(&before).cloned() {
                if !self.is_compiled(&before, &revision, found).await {
                    return false;
                }
                if let Err(error) | Ok(LoadResult::NotYet(error)) = self.reload(&revision, found).await {
                    tracing::warn!(%error, revision = name, "a fallback of this revision cannot be loaded");
                }
            }
            self.loading.get_mut(name).and_then(VecDeque::pop_front);
        }
        true
    }

    /// Returns whether a revision can be loaded at once: it is loaded, has no component, or its check has finished.
    pub(super) fn is_loadable(&self, name: &str) -> bool {
        let is_loaded = || self.revisions.entries.get(name).is_some_and(|entry| entry.content.is_loaded());
        let has_component = || self.records.get(name).is_some_and(|revision| revision.spec.digest.is_some());
        is_loaded() || !has_component() || matches!(self.checks.stand(name), Stand::Ended)
    }

    /// Returns whether a revision can be loaded at once. If the revision cannot be loaded at once, starts a background
    /// check of its component. The end of the check starts a new round.
    pub(super) async fn is_compiled(&mut self, name: &str, revision: &Revision, found: &[Found]) -> bool {
        if self.is_loadable(name) {
            return true;
        }
        let source = &revision.spec.source;
        match self.checks.stand(name) {
            Stand::Ended => true,
            Stand::UnderWay => false,
            Stand::Open if !self.checks.has_room_for(&source.namespace) => false,
            Stand::Open => match self.package_of(revision, found).await {
                Ok(Some(package)) if package.component.is_some() => {
                    self.fairness.give(&source.namespace);
                    self.checks.begin(name, &source.namespace, self.defaults.granted(source, &package));
                    false
                }
                // The package is missing or invalid, so there is nothing to check. The attempt to load the revision
                // reports the reason.
                Ok(_) | Err(_) => true,
            },
        }
    }

    /// Returns the revision to load next, and the time when this revision is due; `None` if no revision must be loaded.
    /// If several revisions are due, the namespaces take turns.
    fn next_unloaded(&self, found: &[Found]) -> Option<(Instant, String)> {
        let (serving, now) = (self.facts().serving(), Instant::now());
        let is_asked_anew = |name: &str| self.is_asked_for(name) && self.tried_for.get(name) != Some(&self.asked(name));
        let rank = |name: &String| {
            let due = self.due.get(name).copied().filter(|due| *due > now && !is_asked_anew(name));
            let had = self.revisions.entries.get(name).map(|entry| self.fairness.had(&entry.source.namespace));
            // A revision whose check has finished comes first.
            let next = self.loading.get(name).and_then(VecDeque::front).unwrap_or(name);
            let is_open = !matches!(self.checks.stand(next), Stand::Ended);
            (due.unwrap_or(now), is_open, had, name.clone())
        };
        let put_off = self.revisions.unloaded(&serving).map(|(name, _)| name);
        let wanted = serving.iter().filter(|name| self.is_wanted_back(name, found));
        put_off.chain(wanted).map(rank).min().map(|(due, .., name)| (due, name))
    }
}

/// Returns the entry for a tenant's policy that is not loaded. The facts in the entry come from the PolicyRevision of
/// the policy.
fn unloaded(revision: &Revision, found: &[Found]) -> AdmittedRevision {
    let PolicyRevisionSpec { source, scope, .. } = &revision.spec;
    let status = revision.status.clone().unwrap_or_default();
    // If the revision waits because an older package has its place, it answers for no kind.
    let is_kept_out = status.state == RevisionState::Conflict;
    let kinds = if is_kept_out { Vec::new() } else { kinds_of(&status).collect() };
    let stage = moved_objects(&status);
    AdmittedRevision {
        source: source.clone(),
        age: age_of(revision, found),
        reach: Reach::Own(source.namespace.clone()),
        pinned: scope.pinned,
        content: Content::Unloaded(status.policy.unwrap_or_default(), kinds, 1),
        on_refusal: OnRefusal::default(),
        rollout: Rollout::default(),
        stage,
        since: parsed(status.since.as_deref()),
        predecessor: status.predecessor,
    }
}
