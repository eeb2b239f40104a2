//! Tries settings before they take effect, on the samples of the policies that answer where the settings apply.

use std::collections::BTreeSet;

use kaos_crds::{PolicySource, RevisionState};
use kaos_policy::settings::Layer;

use super::{Lifecycle, not_admitted::NotAdmitted};
use crate::{
    catalogue::{
        Arranged, Reach,
        installed::{
            cases::{Case, Tried, of_cluster},
            records::NOT_LOADED,
            revision_set::{AdmittedRevision, Content, Unfit},
        },
        lasting,
    },
    config_maps::OPERATOR_CONFIG,
};

/// The result of trying the operator's own ConfigMap.
pub(super) enum ConfigTrial {
    Fits,
    Unfit(Unfit),
    /// The trial runs in the background. The end of the trial starts a new round.
    UnderWay,
}

impl Lifecycle {
    /// Tries the content of the operator's own ConfigMap in the background, if the content changed. Tries the same
    /// content with the same policies only once.
    pub(super) async fn try_config(&mut self, config: Option<&Layer>, arranged: &Arranged) -> ConfigTrial {
        let holds = self.installed.as_ref().is_some_and(|(_, before)| before.as_ref() == config);
        let cases = if holds || config.is_none() { Vec::new() } else { of_cluster(arranged) };
        if cases.is_empty() {
            return ConfigTrial::Fits;
        }
        // A trial of the owner's settings uses up no turn of a namespace, so ignore its duration.
        let _time = self.trials.take_up(OPERATOR_CONFIG).await;
        let Some(tried) = self.trials.result(OPERATOR_CONFIG, &cases).cloned() else {
            let home = self.tools.duties.operator_namespace.clone();
            self.trials.begin(OPERATOR_CONFIG, &home, cases);
            return ConfigTrial::UnderWay;
        };
        let Err(misfit) = tried else { return ConfigTrial::Fits };
        let before = if misfit.is_before { arranged.staging.revisions() } else { Vec::new() };
        match lasting(misfit.error) {
            Some(error) => ConfigTrial::Unfit(Unfit { before, ..Unfit::of_settings(error.to_string()) }),
            None => ConfigTrial::Fits,
        }
    }

    /// Returns why settings must wait: they apply to a policy of their namespace that the operator has not loaded yet.
    /// Returns `None` if the settings need not wait.
    pub(super) fn waits_for_policy(&self, entry: &AdmittedRevision, serving: &BTreeSet<String>) -> Option<NotAdmitted> {
        let Content::Settings(policy, _) = &entry.content else { return None };
        let unloaded = self.unloaded_for(policy, &entry.reach, serving)?;
        let message = format!(
            "the settings apply to policy {unloaded} of this namespace, and the operator has not loaded this policy yet"
        );
        Some(NotAdmitted::pending(NOT_LOADED, message))
    }

    /// Tries the cases of a revision in the background. Returns `None` while the trial runs or waits for its turn.
    pub(super) async fn tried(&mut self, name: &str, source: &PolicySource, cases: Vec<Case>) -> Option<Tried> {
        let namespace = &source.namespace;
        if !cases.is_empty() {
            if let Some(time) = self.trials.take_up(name).await {
                self.fairness.took(namespace, time);
            }
            let Some(tried) = self.trials.result(name, &cases) else {
                if self.trials.has_room_for(namespace) && !self.waits_for_loading(source) {
                    self.fairness.take(namespace);
                    self.trials.begin(name, namespace, cases);
                }
                return None;
            };
            if tried.is_err() {
                return Some(tried.clone());
            }
            self.fairness.take(namespace);
        }
        Some(Ok(()))
    }

    /// Returns the cases in which the operator tries a revision. The cases use the settings that are in effect. The
    /// parameter `arranged` is the policy table with the current content of the operator's own ConfigMap, which may not
    /// be in effect yet.
    pub(super) fn cases_of(
        &mut self,
        name: &str,
        serving: &BTreeSet<String>,
        arranged: &Arranged,
    ) -> Result<Vec<Case>, Unfit> {
        let held = self.held_config();
        if held == self.config() && !arranged.conflicts.contains_key(name) {
            return Ok(self.revisions.cases(name, serving, arranged));
        }
        let shared = self.shared(held.as_ref());
        self.revisions.cases_as_first(name, serving, &shared)
    }

    /// Returns the name of a policy for which the settings of a namespace must wait: a policy of the same namespace
    /// that the operator has not loaded yet. The policy that is not loaded has the name `policy`, to which the settings
    /// apply, or it claims a kind that the loaded policies of this name claim. Returns `None` if the settings need not
    /// wait.
    fn unloaded_for(&self, policy: &str, reach: &Reach, serving: &BTreeSet<String>) -> Option<&String> {
        let claimed = self.revisions.claimed_by(policy);
        let entries = serving.iter().chain(self.held_open()).filter_map(|name| self.revisions.entries.get(name));
        let concerns = |entry: &AdmittedRevision| matches!(reach, Reach::Own(_)) && entry.reach == *reach;
        entries.filter(|entry| concerns(entry)).find_map(|entry| match &entry.content {
            Content::Unloaded(name, kinds, _) if name == policy || kinds.iter().any(|of| claimed.contains(of)) => {
                Some(name)
            }
            _ => None,
        })
    }

    /// Makes the operator retry the settings of a namespace that wait until a policy is loaded. Returns whether any
    /// settings waited.
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
