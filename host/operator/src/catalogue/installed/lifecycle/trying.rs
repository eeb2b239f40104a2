//! Tries settings on the samples of the policies that answer where the settings apply, before they take effect.

use std::collections::BTreeSet;

use kaos_crds::RevisionState;
use kaos_policy::settings::Layer;

use super::{Lifecycle, Transition, Trial, admission::NotAdmitted};
use crate::catalogue::{
    Arranged, Reach,
    installed::{
        cases::{Case, Misfit, of_cluster},
        records::NOT_LOADED,
        revision_set::{Content, Entry, Unfit},
    },
    lasting,
};

impl Lifecycle {
    /// Tries the content of the operator's own ConfigMap, if it changed. The same content is tried once.
    pub(super) async fn try_config(
        &mut self,
        config: Option<&Layer>,
        serving: &BTreeSet<String>,
        arranged: &Arranged,
    ) -> Result<(), Unfit> {
        let holds = self.installed.as_ref().is_some_and(|(_, before)| before.as_ref() == config);
        if holds || config.is_none() {
            return Ok(());
        }
        let is_known = |trial: &&Trial| trial.config.as_ref() == config && trial.serving == *serving;
        if let Some(trial) = self.trial.as_ref().filter(is_known) {
            return trial.unfit.clone().map_or(Ok(()), Err);
        }
        let tried = self.trier.try_all(&of_cluster(arranged), &self.trier.home).await;
        let misfit = tried.err().and_then(|misfit| lasting(misfit.error));
        let unfit = misfit.map(|error| Unfit::of_settings(error.to_string()));
        self.trial = Some(Trial { config: config.cloned(), serving: serving.clone(), unfit: unfit.clone() });
        unfit.map_or(Ok(()), Err)
    }

    /// Tries the settings of a package without a component in the background, on the policies that answer in its scope
    /// after `arranged`. `serving` are the revisions that serve then. Returns `None` while the trial runs or waits for
    /// its turn.
    pub(super) async fn tried(
        &mut self,
        name: &str,
        policy: &str,
        entry: &Entry,
        serving: &BTreeSet<String>,
        arranged: &Arranged,
    ) -> Option<Result<(), NotAdmitted>> {
        if let Some(unloaded) = self.unloaded_for(policy, &entry.reach, serving) {
            let message =
                format!("policy {unloaded} of this namespace is not loaded yet, and the settings apply to it");
            let transition = Transition::new(RevisionState::Pending, NOT_LOADED, message);
            return Some(Err(NotAdmitted { transition, again: true }));
        }
        let cases = match self.cases_of(name, serving, arranged) {
            Ok(cases) => cases,
            Err(Unfit { reason, message, .. }) => return Some(Err(NotAdmitted::refused(reason, message))),
        };
        if cases.is_empty() {
            return Some(Ok(()));
        }
        let namespace = &entry.source.namespace;
        if let Some(time) = self.trials.take_up(name).await {
            self.fairness.took(namespace, time);
        }
        let Some(tried) = self.trials.result(name, &cases).cloned() else {
            if self.trials.has_room_for(namespace) && !self.waits_for_loading(&entry.source) {
                self.fairness.take(namespace);
                self.trials.begin(name, namespace, cases);
            }
            return None;
        };
        let Err(Misfit { error, .. }) = tried else { return Some(Ok(())) };
        if error.is_lasting() {
            return Some(Err(NotAdmitted::refused("BadSettings", error.to_string())));
        }
        // The next attempt is a new trial.
        self.trials.forget(name);
        let transition = Transition::new(RevisionState::Pending, error.reason(), error.to_string());
        Some(Err(NotAdmitted { transition, again: true }))
    }

    /// Returns the cases in which a revision is tried, under the settings that are in effect. `arranged` are the answers
    /// under the current content of the operator's own ConfigMap.
    fn cases_of(&mut self, name: &str, serving: &BTreeSet<String>, arranged: &Arranged) -> Result<Vec<Case>, Unfit> {
        let held = self.held_config();
        if held == self.config() && !arranged.conflicts.contains_key(name) {
            return Ok(self.revisions.cases(name, serving, arranged));
        }
        let shared = self.shared(held.as_ref());
        self.revisions.cases_as_first(name, serving, &shared)
    }

    /// Returns a policy that settings of a namespace apply to and that is not loaded: one that they are for, or one that
    /// answers for the same kinds.
    fn unloaded_for(&self, policy: &str, reach: &Reach, serving: &BTreeSet<String>) -> Option<&String> {
        let claimed = self.revisions.claimed_by(policy);
        let entries = serving.iter().chain(self.held_open()).filter_map(|name| self.revisions.entries.get(name));
        let concerns = |entry: &Entry| matches!(reach, Reach::Own(_)) && entry.reach == *reach;
        entries.filter(|entry| concerns(entry)).find_map(|entry| match &entry.content {
            Content::Unloaded(name, kinds, _) if name == policy || kinds.iter().any(|of| claimed.contains(of)) => {
                Some(name)
            }
            _ => None,
        })
    }

    /// Makes the settings of a namespace due that wait for a policy to be loaded. Returns whether there are any.
    pub(super) fn wake_settings(&mut self, namespace: &str) -> bool {
        let records = &self.records;
        let waits = |name: &String| {
            let status = records.status(name);
            let is_of = || records.get(name).is_some_and(|it| it.spec.source.namespace == namespace);
            status.state == RevisionState::Pending && status.reason.as_deref() == Some(NOT_LOADED) && is_of()
        };
        let before = self.due.len();
        self.due.retain(|name, _| !waits(name));
        self.due.len() < before
    }
}
