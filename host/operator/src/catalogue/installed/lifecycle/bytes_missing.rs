//! Handles lost revisions: admitted revisions that a new process cannot load any more, because the stored bytes are
//! gone or this build does not accept the bytes.
//!
//! A revision that cannot be loaded keeps its place, and its predecessor answers as a fallback. The fallback deletes no
//! children, because the lost revision needs its children again when it is loaded again. The operator tries to load the
//! revision at each start, when the bytes come back, and when a user requests an attempt.
//!
//! A revision that yields during a rollout can be lost too. In this case, the objects that the rollout has not moved
//! wait. The predecessor of the yielding revision must not take over these objects, because their children would then
//! change twice.

use std::collections::BTreeSet;

use kaos_crds::{PolicyRevisionSpec, PolicyRevisionStatus, RevisionState};
use kaos_policy::{
    cut::{NOTE, cut},
    manifest::OnRefusal,
    rollout::Rollout,
};

use super::{
    Found, Lifecycle, StepError, Transition,
    restoring::{LoadResult, age_of},
    rollout::serves_again,
};
use crate::{
    catalogue::{
        Reach,
        installed::{
            records::{NOT_LOADED, Revision, kinds_of, was_not_loaded},
            revision_set::{AdmittedRevision, Content, Unfit, moved_objects},
            sources::held_now,
        },
    },
    timestamps::parsed,
};

/// The start of the message of a revision that cannot be loaded any more. Do not change this text: [`is_withheld`]
/// looks for this text in statuses that earlier versions of the operator wrote.
const LOST: &str = "it cannot be loaded any more";

impl Lifecycle {
    /// Lets the predecessor replace an active revision that cannot be loaded any more.
    pub(super) async fn withhold(&mut self, revision: &Revision, found: &[Found], why: &str, bytes_are_gone: bool) {
        let name = revision.metadata.name.clone().unwrap_or_default();
        let why = format!("{LOST} ({})", cut(why, NOTE));
        tracing::error!(revision = name, why, "active revision cannot be loaded; the predecessor serves instead");
        self.lose(revision, found, &why, bytes_are_gone);
        let message = format!(
            "{why}, so the predecessor serves instead, and deletes no children of this revision. Apply the revision's \
             ConfigMap again (unchanged, or with another version), delete the ConfigMap, or run kaos-operator policy \
             rollback. The operator tries to load the revision again at its next start; to try now: {}",
            self.remedy(&name)
        );
        let asked = self.asked(&name);
        let withheld = Transition::new(RevisionState::Active, NOT_LOADED, message);
        self.enter_or_owe(&name, withheld, |status| status.retried = asked).await;
    }

    /// Records that a yielding revision cannot be loaded any more, so that its objects wait.
    pub(super) async fn cannot_yield(&mut self, revision: &Revision, found: &[Found], why: &str, bytes_are_gone: bool) {
        let name = revision.metadata.name.clone().unwrap_or_default();
        let why = format!("{LOST} ({})", cut(why, NOTE));
        if self.records.status(&name).reason.as_deref() != Some(NOT_LOADED) {
            tracing::error!(revision = name, why, "the predecessor of a rollout cannot be loaded; its objects wait");
        }
        self.lose(revision, found, &why, bytes_are_gone);
        let message = format!(
            "{why}, so the objects that the rollout has not moved wait, and keep their children. Install the package of \
             this revision again, or run kaos-operator policy promote to move all objects. To try to load the revision \
             now: {}",
            self.remedy(&name)
        );
        let asked = self.asked(&name);
        let withheld = Transition::new(RevisionState::Yielding, NOT_LOADED, message);
        self.enter_or_owe(&name, withheld, |status| status.retried = asked).await;
    }

    /// Records in the admitted revisions that a revision cannot be loaded any more.
    fn lose(&mut self, revision: &Revision, found: &[Found], why: &str, bytes_are_gone: bool) {
        let PolicyRevisionSpec { source, scope, digest, .. } = &revision.spec;
        let status = revision.status.clone().unwrap_or_default();
        let kinds = if digest.is_some() { kinds_of(&status).collect() } else { Vec::new() };
        let entry = AdmittedRevision {
            source: source.clone(),
            age: age_of(revision, found),
            reach: Reach::of_package(&source.namespace, &scope.namespaces, &self.tools.duties.operator_namespace),
            pinned: scope.pinned,
            stage: moved_objects(&status),
            content: Content::Lost {
                policy: status.policy.unwrap_or_default(),
                kinds,
                why: why.to_owned(),
                bytes_are_gone,
                failures: 1,
            },
            on_refusal: OnRefusal::default(),
            rollout: Rollout::default(),
            since: parsed(status.since.as_deref()),
            predecessor: status.predecessor,
        };
        self.revisions.entries.insert(revision.metadata.name.clone().unwrap_or_default(), entry);
    }

    /// Returns whether to try to load the predecessor of a rollout again. If this build does not accept the
    /// predecessor's bytes, tries again only if a user requests this.
    pub(super) fn may_yield_again(&self, name: &str) -> bool {
        match self.revisions.entries.get(name).map(|entry| &entry.content) {
            Some(Content::Lost { bytes_are_gone, .. }) => *bytes_are_gone || self.is_asked_for(name),
            _ => true,
        }
    }

    /// Returns whether to load a lost revision again: the bytes came back, or a user requests an attempt.
    pub(super) fn is_wanted_back(&self, name: &str, found: &[Found]) -> bool {
        let Some(Content::Lost { bytes_are_gone, .. }) = self.revisions.entries.get(name).map(|entry| &entry.content)
        else {
            return false;
        };
        let came_back = || self.records.get(name).is_some_and(|revision| held_now(&revision.spec, found).is_some());
        self.is_asked_for(name) || (*bytes_are_gone && came_back())
    }

    /// Loads one revision that was not loaded before, and lets it serve.
    pub(super) async fn load_again(&mut self, revision: &Revision, found: &[Found]) -> Result<LoadResult, StepError> {
        let name = revision.metadata.name.as_deref().unwrap_or_default();
        let before = self.revisions.entries.get(name).cloned();
        let loaded = self.load_and_let_back(revision, found).await;
        if let (Err(_), Some(before)) = (&loaded, before) {
            // After an error, restore the old entry: the operator does not know yet whether the revision can serve, or
            // could not write its status.
            self.revisions.entries.insert(name.to_owned(), before);
        }
        loaded
    }

    async fn load_and_let_back(&mut self, revision: &Revision, found: &[Found]) -> Result<LoadResult, StepError> {
        let loaded = self.reload(revision, found).await?;
        if matches!(loaded, LoadResult::Serves) && was_not_loaded(revision) {
            self.let_back(std::slice::from_ref(revision), found).await?;
        }
        Ok(loaded)
    }

    /// Lets the revisions in the parameter `back` serve. These revisions are loaded now, but an earlier attempt to load
    /// them failed. If one of them cannot serve together with the revisions that the operator admitted in the meantime,
    /// its predecessor keeps serving, and the other revisions in `back` serve nevertheless.
    pub(super) async fn let_back(&mut self, back: &[Revision], found: &[Found]) -> Result<(), StepError> {
        let names: Vec<String> =
            back.iter().map(|revision| revision.metadata.name.clone().unwrap_or_default()).collect();
        let mut serving = self.facts().serving();
        serving.retain(|name| !names.contains(name));
        for (name, revision) in names.into_iter().zip(back) {
            serving.insert(name.clone());
            if let Some(Unfit { reason, message, .. }) = self.unfit_beside(&name, &serving).await? {
                self.withhold(revision, found, &format!("{reason}: {message}"), false).await;
                continue;
            }
            let asked = self.asked(&name);
            let (serves, rollout) = serves_again(&self.records.status(&name), self.tools.clock.now());
            self.enter_or_owe(&name, serves, |status| (status.retried, status.rollout) = (asked, rollout)).await;
        }
        Ok(())
    }

    /// Returns why a revision cannot serve together with the other serving revisions. Returns `None` if the revision
    /// can serve. Also returns `None` if the other revisions alone cannot serve together.
    async fn unfit_beside(&mut self, name: &str, serving: &BTreeSet<String>) -> Result<Option<Unfit>, StepError> {
        let fitted = match &self.installed {
            Some((_, fitted)) => fitted.clone(),
            None => self.last_good.get().await?,
        };
        let mut others = serving.clone();
        others.remove(name);
        // If the content of the operator's own ConfigMap does not fit the policies, try the last good settings.
        let settings = [self.config(), fitted].map(|config| self.shared(config.as_ref()));
        let hold = settings.iter().find(|shared| self.revisions.arrange(&others, shared).is_ok());
        Ok(hold.and_then(|shared| self.revisions.arrange_with(Some(name), serving, shared).err()))
    }
}

/// Returns whether the status of a revision says that the revision is active and cannot be loaded any more.
pub(crate) fn is_withheld(status: &PolicyRevisionStatus) -> bool {
    status.reason.as_deref() == Some(NOT_LOADED)
        && status.message.as_deref().is_some_and(|message| message.starts_with(LOST))
}
