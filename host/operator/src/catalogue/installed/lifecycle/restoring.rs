//! Loads the recorded revisions, so that the same revisions serve as before this process started.

use std::sync::Arc;

use kaos_crds::RevisionState;

use super::{
    Found, Lifecycle, StepError, Transition,
    default_packages::gives_way,
    not_admitted::{NO_SUCH_POLICY, NotAdmitted},
};
use crate::{
    catalogue::{
        Age,
        installed::{
            self,
            records::{Revision, was_not_loaded},
            revision_set::{AdmittedRevision, moved_objects},
            sources::held_now,
        },
    },
    package::Package,
    timestamps::parsed,
};

pub(super) enum LoadResult {
    Serves,
    /// The revision cannot be loaded. The PolicyRevision contains the reason.
    Never,
    /// The revision cannot be loaded any more. If the revision was active, its predecessor replaces it. If the revision
    /// yielded, its objects wait.
    Withheld,
    /// A temporary error prevented the load: the compile child was killed, or got no processor.
    NotYet(StepError),
}

impl Lifecycle {
    /// Loads the revisions that served when the last process ended, and their predecessors. Policies of tenants are
    /// loaded in the background.
    pub(super) async fn restore(&mut self, found: &[Found]) -> Result<(), StepError> {
        let is_let_in = |revision: &&Revision| {
            revision.status.as_ref().is_some_and(|status| status.state.is_let_in())
                && !self.defaults.is_over(&revision.spec.source)
        };
        let mut active: Vec<Revision> = self.records.all().values().filter(is_let_in).cloned().collect();
        // Load policies first, because settings can only be loaded after their policy.
        active.sort_by_key(|revision| revision.spec.digest.is_none());
        let mut back = Vec::new();
        for revision in active {
            let name = revision.metadata.name.clone().unwrap_or_default();
            if self.load_beside(&revision, found) {
                continue;
            }
            match self.reload(&revision, found).await {
                Err(error) | Ok(LoadResult::NotYet(error)) => self.put_off(&revision, found, error).await?,
                Ok(LoadResult::Serves) if was_not_loaded(&revision) => back.push(revision.clone()),
                Ok(LoadResult::Serves | LoadResult::Never | LoadResult::Withheld) => {}
            }
            if self.defaults.is_over(&revision.spec.source) {
                // The default policy of this process has just replaced this recorded default policy, which needs no
                // fallback.
                continue;
            }
            for before in self.facts().before(&name) {
                // An error of a predecessor must not delay the serving revision.
                if let Some(before) = self.records.get(&before).cloned()
                    && let Err(error) | Ok(LoadResult::NotYet(error)) = self.reload(&before, found).await
                {
                    tracing::warn!(%error, revision = name, "a fallback of this revision cannot be loaded");
                }
            }
        }
        // Check the revisions in `back` last, because the check compares them with all other revisions.
        self.let_back(&back, found).await
    }

    /// Returns the package of a revision, from a ConfigMap that contains it now or from the stored bytes. Returns
    /// `None` if neither exists.
    pub(super) async fn package_of(
        &self,
        revision: &Revision,
        found: &[Found],
    ) -> Result<Option<Arc<Package>>, StepError> {
        match held_now(&revision.spec, found) {
            Some(package) => Ok(Some(Arc::clone(package))),
            None => Ok(self.store.load(revision).await?.map(Arc::new)),
        }
    }

    /// Loads one revision. If the load fails, records the reason, and lets the predecessor replace an active revision.
    /// If the revision could not be loaded before, the caller must also call [`let_back`](Self::let_back).
    pub(super) async fn reload(&mut self, revision: &Revision, found: &[Found]) -> Result<LoadResult, StepError> {
        let name = revision.metadata.name.clone().unwrap_or_default();
        if self.revisions.entries.get(&name).is_some_and(|entry| entry.content.is_loaded()) {
            return Ok(LoadResult::Serves);
        }
        let serves = revision.status.as_ref().is_some_and(|status| status.state == RevisionState::Active);
        let yields = self.facts().yields(&name);
        let Some(mut package) = self.package_of(revision, found).await? else {
            let lost = "the revision's stored bytes are missing or were changed";
            if gives_way(revision) {
                self.replace_unloadable(revision, lost).await;
                return Ok(LoadResult::Never);
            }
            if serves {
                self.withhold(revision, found, &format!("BytesLost: {lost}"), true).await;
                return Ok(LoadResult::Withheld);
            }
            if yields {
                self.cannot_yield(revision, found, &format!("BytesLost: {lost}"), true).await;
                return Ok(LoadResult::Withheld);
            }
            // The bytes may still be in the source ConfigMap.
            let may_come = found.iter().any(|found| found.source == revision.spec.source && found.held.is_none());
            let transition = if may_come {
                Transition::new(
                    RevisionState::Pending,
                    "BytesLost",
                    format!("{lost}, and the operator has not read the revision's ConfigMap yet"),
                )
            } else {
                Transition::new(
                    RevisionState::Refused,
                    "BytesLost",
                    format!(
                        "{lost}: apply the revision's ConfigMap \
                    again"
                    ),
                )
            };
            self.enter_or_owe(&name, transition, |_| {}).await;
            return Ok(LoadResult::Never);
        };
        if package.namespace != revision.spec.source.namespace {
            Arc::make_mut(&mut package).namespace.clone_from(&revision.spec.source.namespace);
        }
        if yields || revision.status.as_ref().is_some_and(|status| status.state.is_let_in()) {
            // Store the bytes again, because they may exist only in the package's own ConfigMap, or the garbage
            // collector may be about to delete the stored bytes.
            self.keep_soon(name.clone(), Arc::clone(&package));
        }
        let source = &revision.spec.source;
        let content = match self.reach(source, &package) {
            Ok(reach) => self.content(&name, source, &package).await.map(|content| (reach, content)),
            Err(refused) => Err(refused),
        };
        match content {
            Err(NotAdmitted { transition, again: false }) if gives_way(revision) => {
                self.replace_unloadable(revision, &format!("{}: {}", transition.reason, transition.message)).await;
                Ok(LoadResult::Never)
            }
            // Do not withhold settings whose policy does not exist: such settings have no effect.
            Err(NotAdmitted { transition, again: false }) if serves && transition.reason != NO_SUCH_POLICY => {
                self.withhold(revision, found, &format!("{}: {}", transition.reason, transition.message), false).await;
                Ok(LoadResult::Withheld)
            }
            Err(NotAdmitted { transition, again: false }) if yields => {
                let why = format!("{}: {}", transition.reason, transition.message);
                self.cannot_yield(revision, found, &why, false).await;
                Ok(LoadResult::Withheld)
            }
            Err(NotAdmitted { transition, again: false }) => {
                self.enter_or_owe(&name, transition, |_| {}).await;
                Ok(LoadResult::Never)
            }
            Err(NotAdmitted { transition, again: true }) => {
                let what = format!("load PolicyRevision {name}");
                Ok(LoadResult::NotYet(StepError { what, message: transition.message, is_answered: true }))
            }
            Ok((reach, content)) => {
                let status = revision.status.clone().unwrap_or_default();
                let stage = moved_objects(&status);
                let entry = AdmittedRevision {
                    source: revision.spec.source.clone(),
                    age: age_of(revision, found),
                    reach,
                    pinned: package.file.scope.pinned,
                    content,
                    on_refusal: package.file.on_refusal,
                    rollout: self.defaults.rollout(&revision.spec.source, &package),
                    stage,
                    since: parsed(status.since.as_deref()),
                    predecessor: status.predecessor,
                };
                self.revisions.entries.insert(name, entry);
                Ok(LoadResult::Serves)
            }
        }
    }
}

/// Returns the age of a revision. If its ConfigMap exists, uses the creation time of the ConfigMap.
pub(super) fn age_of(revision: &Revision, found: &[Found]) -> Age {
    let source = found.iter().find(|found| found.source == revision.spec.source);
    installed::age_of(revision, source.map(|found| found.age.created.clone()))
}
