//! What served and cannot be loaded any more when a process begins: its bytes are gone, or this build takes them no longer.
//!
//! It keeps its place, and what served before only stands in for it: whatever that does not know of is wanted again as soon
//! as this can be loaded, which is tried at each start, when its bytes come back, and when somebody asks.

use std::collections::BTreeSet;

use kaos_crds::{PolicyRevisionSpec, PolicyRevisionStatus, RevisionState};
use kaos_policy::{
    cut::{NOTE, cut},
    manifest::OnRefusal,
};

use super::{
    Found, Lifecycle, PATIENCE, StepError, Turn,
    restoring::{Loaded, age_of, held_now},
};
use crate::{
    catalogue::{
        Reach,
        installed::{
            records::{NOT_LOADED, Revision, kinds_of, was_not_loaded},
            roster::{Content, Entry, Unfit},
        },
    },
    moments::parsed,
};

/// How the message of a revision begins that cannot be loaded any more.
const LOST: &str = "it cannot be loaded any more";

impl Lifecycle {
    /// Has what served before stand in for a revision that serves and cannot be loaded any more.
    pub(super) async fn withhold(&mut self, revision: &Revision, found: &[Found], why: &str, bytes_are_gone: bool) {
        let PolicyRevisionSpec { source, scope, digest, .. } = &revision.spec;
        let name = revision.metadata.name.clone().unwrap_or_default();
        let why = format!("{LOST} ({})", cut(why, NOTE));
        tracing::error!(revision = name, why, "what served before stands in for it");
        let status = revision.status.clone().unwrap_or_default();
        let kinds = if digest.is_some() { kinds_of(&status).collect() } else { Vec::new() };
        let entry = Entry {
            source: source.clone(),
            age: age_of(revision, found),
            reach: Reach::of_package(&source.namespace, &scope.namespaces, &self.tools.duties.operator_namespace),
            pinned: scope.pinned,
            content: Content::Lost {
                policy: status.policy.unwrap_or_default(),
                kinds,
                why: why.clone(),
                bytes_are_gone,
                wait: PATIENCE.0,
            },
            on_refusal: OnRefusal::default(),
            since: parsed(status.since.as_deref()),
            predecessor: status.predecessor,
        };
        self.roster.entries.insert(name.clone(), entry);
        let message = format!(
            "{why}, so what served before stands in for it, and deletes nothing that it made: apply its ConfigMap again \
             as it was or with another version, go back with kaos-operator policy rollback, or delete the ConfigMap. It \
             is tried again when the operator starts, or now: {}",
            self.remedy(&name)
        );
        let asked = self.asked(&name);
        let withheld = Turn::new(RevisionState::Active, NOT_LOADED, message);
        self.enter_or_owe(&name, withheld, |status| status.retried = asked).await;
    }

    /// Whether there is reason to load again what could not be any more: its bytes came back, or somebody asks for it.
    pub(super) fn is_wanted_back(&self, name: &str, found: &[Found]) -> bool {
        let Some(Content::Lost { bytes_are_gone, .. }) = self.roster.entries.get(name).map(|entry| &entry.content)
        else {
            return false;
        };
        let came_back = || self.records.get(name).is_some_and(|revision| held_now(revision, found).is_some());
        self.is_asked_for(name) || (*bytes_are_gone && came_back())
    }

    /// Loads one revision that was not loaded before, and lets it back.
    pub(super) async fn load_again(&mut self, revision: &Revision, found: &[Found]) -> Result<Loaded, StepError> {
        let name = revision.metadata.name.as_deref().unwrap_or_default();
        let before = self.roster.entries.get(name).cloned();
        let loaded = self.load_and_let_back(revision, found).await;
        if let (Err(_), Some(before)) = (&loaded, before) {
            // Nobody knows yet whether it goes with the rest, or it could not be told that it does not.
            self.roster.entries.insert(name.to_owned(), before);
        }
        loaded
    }

    async fn load_and_let_back(&mut self, revision: &Revision, found: &[Found]) -> Result<Loaded, StepError> {
        let loaded = self.reload(revision, found).await?;
        if matches!(loaded, Loaded::Serves) && was_not_loaded(revision) {
            self.let_back(std::slice::from_ref(revision), found).await?;
        }
        Ok(loaded)
    }

    /// Lets serve what was not loaded before and is now. Where that does not go with what was let in meanwhile, what served
    /// before goes on standing in for it: nobody else has to wait for that.
    pub(super) async fn let_back(&mut self, back: &[Revision], found: &[Found]) -> Result<(), StepError> {
        let names: Vec<String> =
            back.iter().map(|revision| revision.metadata.name.clone().unwrap_or_default()).collect();
        let mut serving = self.serving();
        serving.retain(|name| !names.contains(name));
        for (name, revision) in names.into_iter().zip(back) {
            serving.insert(name.clone());
            if let Some(Unfit { reason, message, .. }) = self.unfit_beside(&name, &serving).await? {
                self.withhold(revision, found, &format!("{reason}: {message}"), false).await;
                continue;
            }
            let asked = self.asked(&name);
            let serves = Turn::new(RevisionState::Active, "Active", "");
            self.enter_or_owe(&name, serves, |status| status.retried = asked).await;
        }
        Ok(())
    }

    /// Why a revision does not go with others that serve, if these go together without it.
    async fn unfit_beside(&mut self, name: &str, serving: &BTreeSet<String>) -> Result<Option<Unfit>, StepError> {
        let fitted = match &self.installed {
            Some((_, fitted)) => fitted.clone(),
            None => self.fitted.get().await?,
        };
        let mut others = serving.clone();
        others.remove(name);
        // The operator's own ConfigMap need not fit: then what fitted last holds.
        let settings = [self.config(), fitted].map(|config| self.shared(config.as_ref()));
        let hold = settings.iter().find(|shared| self.roster.arrange(&others, shared).is_ok());
        Ok(hold.and_then(|shared| self.roster.arrange_with(Some(name), serving, shared).err()))
    }
}

/// Whether a revision serves, as far as its status tells, and cannot be loaded any more.
pub(crate) fn is_withheld(status: &PolicyRevisionStatus) -> bool {
    status.reason.as_deref() == Some(NOT_LOADED)
        && status.message.as_deref().is_some_and(|message| message.starts_with(LOST))
}
