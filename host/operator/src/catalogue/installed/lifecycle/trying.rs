//! Tries settings on the samples of the policies that answer where the settings apply, before they take effect.

use std::collections::BTreeSet;

use kaos_crds::RevisionState;
use kaos_policy::settings::{Layer, Origin};

use super::{Lifecycle, Transition, Trial, admission::NotAdmitted};
use crate::catalogue::{
    Arranged, Kind, Reach,
    installed::{
        records::NOT_LOADED,
        revision_set::{AdmittedRevision, Content, Unfit},
        settings_trials::Case,
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
        let unfit = tried.err().and_then(lasting).map(|error| Unfit::of_settings(error.to_string()));
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
        entry: &AdmittedRevision,
        serving: &BTreeSet<String>,
        arranged: Arranged,
    ) -> Option<Result<(), NotAdmitted>> {
        if let Some(unloaded) = self.unloaded_for(policy, &entry.reach, serving) {
            let message =
                format!("policy {unloaded} of this namespace is not loaded yet, and the settings apply to it");
            let transition = Transition::new(RevisionState::Pending, NOT_LOADED, message);
            return Some(Err(NotAdmitted { transition, again: true }));
        }
        let cases = match self.arranged_for_trial(name, serving, arranged) {
            Ok(arranged) => cases(&arranged, name, policy, entry, serving),
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
        let Err(error) = tried else { return Some(Ok(())) };
        if error.is_lasting() {
            return Some(Err(NotAdmitted::refused("BadSettings", error.to_string())));
        }
        // The next attempt is a new trial.
        self.trials.forget(name);
        let transition = Transition::new(RevisionState::Pending, error.reason(), error.to_string());
        Some(Err(NotAdmitted { transition, again: true }))
    }

    /// Returns the arrangement for a trial: under the settings that are in effect, and as if no older package set the
    /// same values, because that package may go at any time.
    fn arranged_for_trial(
        &mut self,
        name: &str,
        serving: &BTreeSet<String>,
        arranged: Arranged,
    ) -> Result<Arranged, Unfit> {
        let held = self.held_config();
        if held == self.config() && !arranged.conflicts.contains_key(name) {
            return Ok(arranged);
        }
        let shared = self.shared(held.as_ref());
        let age = self.revisions.entries.get_mut(name).map(|entry| std::mem::take(&mut entry.age));
        let arranged = self.revisions.arrange_with(Some(name), serving, &shared);
        if let (Some(entry), Some(age)) = (self.revisions.entries.get_mut(name), age) {
            entry.age = age;
        }
        arranged
    }

    /// Returns a policy that settings of a namespace apply to and that is not loaded: one that they are for, or one that
    /// answers for the same kinds.
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

/// Returns the cases for the operator's own ConfigMap: the policies that answer for the cluster. Policies of single
/// namespaces do not count here.
fn of_cluster(arranged: &Arranged) -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in arranged.answers.values().filter_map(|answers| answers.of_cluster()) {
        for policy in kind.policies() {
            let layers = kind.layers().to_vec();
            let mut without = layers.clone();
            without.retain(|layer| layer.origin != Origin::OperatorConfig);
            add(&mut cases, Case { policy: policy.clone(), layers, without });
        }
    }
    cases
}

/// Returns the cases for the settings of a package: the policies of this name that answer where the settings apply. For
/// settings from outside of a namespace, leaves out the policies and settings that the namespace installed itself.
fn cases(
    arranged: &Arranged,
    name: &str,
    policy: &str,
    entry: &AdmittedRevision,
    serving: &BTreeSet<String>,
) -> Vec<Case> {
    let Content::Settings(_, tree) = &entry.content else { return Vec::new() };
    let (own, is_local) = (entry.layer(policy, tree), matches!(entry.reach, Reach::Own(_)));
    let counts = |layer: &&Layer| is_local || !matches!(layer.origin, Origin::NamespacePolicy(_));
    let serves = |kind: &&Kind| {
        let base = kind.members().first().and_then(|base| base.revision.as_deref());
        base.is_none_or(|base| serving.contains(base))
    };
    let mut cases = Vec::new();
    for answers in arranged.answers.values() {
        // Predecessors of serving policies answer only for objects that name them by digest.
        let kinds = answers.in_place().map(|kind| &**kind).chain(answers.pinned().filter(serves));
        for kind in kinds.filter(|kind| kind.revisions().any(|revision| &**revision == name)) {
            let members = kind.members().iter().filter(|member| member.policy.id().name == policy);
            for member in members.filter(|member| is_local || !member.is_local) {
                let layers: Vec<Layer> = kind.layers().iter().filter(counts).cloned().collect();
                let without = layers.iter().filter(|layer| **layer != own).cloned().collect();
                add(&mut cases, Case { policy: member.policy.clone(), layers, without });
            }
        }
    }
    cases
}

fn add(cases: &mut Vec<Case>, case: Case) {
    if !cases.contains(&case) {
        cases.push(case);
    }
}
