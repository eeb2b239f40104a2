//! Moves revisions from state to state: a package is found, checked, admitted and served, and later replaced or
//! quarantined.

mod admission;
mod bytes_missing;
mod naming;
mod not_loadable;
mod quarantine;
mod reconcile_packages;
mod record_deleted;
mod renaming;
mod restoring;
mod revision_history;
mod serving;
mod transition;
mod trial;
mod trying;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use kaos_crds::{PolicyRevisionStatus, RevisionState};
use kaos_policy::settings::{Layer, Origin};
use tokio::time::Instant;

pub(crate) use self::bytes_missing::is_withheld;
use self::{transition::Transition, trial::Trial};
use super::{
    Installing, StepError, Tools,
    checks::Checks,
    events::Events,
    last_good_settings::LastGoodSettings,
    pace::{ATTEMPTS, LOOK_AGAIN, PATIENCE},
    questions::Questions,
    records::Records,
    revision_set::{Content, RevisionSet},
    settings_trials::{SettingsTrials, Trier},
    sources::{Found, Held, Sources},
    store::Store,
    tenant_fairness::TenantFairness,
};
use crate::{package::Package, server::Asked};

/// The state of all installed policies.
pub(super) struct Lifecycle {
    tools: Tools,
    settings: Vec<Layer>,
    /// The content of the operator's own ConfigMap at startup.
    began_with: Option<Layer>,
    checks: Checks,
    trier: Trier,
    trials: SettingsTrials,
    questions: Questions,
    sources: Sources,
    records: Records,
    store: Store,
    last_good: LastGoodSettings,
    events: Events,
    fairness: TenantFairness,
    revisions: RevisionSet,
    /// Whether the revisions that served before this process started are loaded, except those in `loading`.
    restored: bool,
    /// Policies of tenants that served before this process started and are loaded in the background. The value lists
    /// the revisions that are left to load: first the possible fallbacks, then the policy itself.
    loading: BTreeMap<String, VecDeque<String>>,
    /// Revisions that are compiled to serve again in place of a quarantined one, and whether no policy serves there
    /// meanwhile.
    restoring: BTreeMap<String, bool>,
    /// The serving revisions and the content of the operator's own ConfigMap at the last swap. They show whether
    /// another swap is needed.
    installed: Option<(BTreeSet<String>, Option<Layer>)>,
    /// The content of that ConfigMap when packages were last checked against it, whether or not it fits.
    looked_under: Option<Layer>,
    /// Why that ConfigMap is not used, as last reported.
    misfit: Option<String>,
    /// The last trial of that ConfigMap.
    trial: Option<Trial>,
    /// The variables of that ConfigMap that are probably misspelled, as last reported.
    misspelt: String,
    /// Revisions whose check this process started.
    checking: BTreeSet<String>,
    /// Revisions that passed the gate and wait for something other than their content.
    waiting: BTreeMap<String, Content>,
    /// The time of the next attempt, for revisions that wait for something other than their own content.
    due: BTreeMap<String, Instant>,
    /// The retry annotation of a revision when it was last loaded again. A new value of the annotation causes an
    /// attempt at once.
    tried_for: BTreeMap<String, Option<String>>,
    /// Serving revisions whose kept bytes may be missing, with the package to keep again.
    unkept: BTreeMap<String, Arc<Package>>,
    /// The time of the next attempt to keep them. `None` before the first one.
    keep_due: Option<Instant>,
    /// Revisions whose objects all had a pass since this process started, or that this process admitted.
    counted: BTreeSet<String>,
    /// The record that could not be deleted in the last attempt.
    stuck: Option<String>,
}

impl Lifecycle {
    pub(super) fn new(
        tools: Tools,
        Installing { own, settings, gatekeeper, .. }: Installing,
        sources: Sources,
        records: Records,
        store: Store,
    ) -> Self {
        let is_copy = |layer: &Layer| layer.origin == Origin::OperatorConfig;
        let (copies, settings): (Vec<_>, Vec<_>) = settings.into_iter().partition(is_copy);
        let began_with = copies.into_iter().next();
        let last_good = LastGoodSettings::new(tools.client.clone(), &tools.duties.operator_namespace);
        let events = Events::new(tools.client.clone(), tools.instance.clone());
        let fairness = TenantFairness::new(&tools.duties.operator_namespace);
        let server = Asked::Running(tools.client.clone());
        let (home, processors) = (tools.duties.operator_namespace.clone(), tools.processors.clone());
        let checks = Checks::new(gatekeeper.clone(), processors.clone(), server.clone(), &home);
        let trier = Trier { gatekeeper, processors, server, home };
        let trials = SettingsTrials::new(trier.clone());
        let questions = Questions::new(tools.client.clone(), &tools.duties.operator_namespace);
        let revisions = RevisionSet { own, entries: BTreeMap::new() };
        Self {
            tools,
            settings,
            began_with,
            checks,
            trier,
            trials,
            questions,
            sources,
            records,
            store,
            last_good,
            events,
            fairness,
            revisions,
            restored: false,
            loading: BTreeMap::new(),
            restoring: BTreeMap::new(),
            installed: None,
            looked_under: None,
            misfit: None,
            trial: None,
            misspelt: String::new(),
            checking: BTreeSet::new(),
            waiting: BTreeMap::new(),
            due: BTreeMap::new(),
            tried_for: BTreeMap::new(),
            unkept: BTreeMap::new(),
            keep_due: None,
            counted: BTreeSet::new(),
            stuck: None,
        }
    }

    /// Waits until packages or records change, or until a check, a trial or a question ends.
    pub(super) async fn changed(&self) {
        tokio::select! {
            () = self.sources.changed() => {}
            () = self.records.changed() => {}
            () = self.checks.changed() => {}
            () = self.trials.changed() => {}
            () = self.questions.changed() => {}
        }
    }

    /// Takes every step that is possible now. Returns when to look again if nothing changes, and the error of a failed
    /// step.
    pub(super) async fn settle(&mut self) -> (Option<Duration>, Result<(), StepError>) {
        let mut wait = None;
        let done = self.round(&mut wait).await;
        (wait, done)
    }

    async fn round(&mut self, wait: &mut Option<Duration>) -> Result<(), StepError> {
        if !self.sources.are_known() {
            self.tools.catalogue.waits_for("the policy ConfigMaps were not listed yet".to_owned());
            return Ok(());
        }
        let found = self.sources.packages().await;
        if !self.records.are_known() {
            if found.is_empty() && !self.restored {
                // A cluster without installed policies does not need the PolicyRevision CRD.
                self.serve().await?;
                self.keep_fitted().await?;
                return Ok(());
            }
            self.tools.catalogue.waits_for(
                "PolicyRevisions were not listed yet: is policyrevisions.kaos.tools installed (kaos-operator crds)?"
                    .to_owned(),
            );
            return Ok(());
        }
        self.records.refresh();
        self.records.settle().await;
        let current = self.current(&found);
        self.questions.keep(|name| current.contains(name));
        self.trials.keep(|name| current.contains(name));
        self.forget_what_loads_no_more();
        let restoring = std::mem::take(&mut self.restoring);
        self.checks.keep(|name| {
            let is_loading = || self.loading.values().flatten().any(|it| it == name);
            current.contains(name)
                || self.revisions.entries.contains_key(name)
                || restoring.contains_key(name)
                || is_loading()
        });
        let begins = !self.restored;
        if begins {
            self.tools.catalogue.remember(self.records.answered());
            self.restore(&found).await?;
            self.restored = true;
        }
        // A record that cannot be written again now counts with its old state, and delays no other revision.
        let written = self.write_again(&found).await;
        let config = self.config();
        if self.looked_under != config {
            // Retry every revision that waits for settings that fit. Do so only once for each content of the ConfigMap.
            self.due.clear();
            self.looked_under = config;
        }
        // A step that fails here is tried again in the next round, and delays no other revision.
        let followed_up = self.follow_up(&found).await;
        // Policies that served before go on before any new package is checked. On a fresh cluster all new packages come
        // first, so that children are not created twice.
        let is_fresh = self.installed.is_none() && self.revisions.entries.is_empty();
        if begins && (found.is_empty() || !is_fresh) {
            self.serve().await?;
        }
        let retired = self.retire(&found).await;
        let (due, advanced) = self.advance_all(&found, is_fresh).await?;
        // A quarantine that fails now is tried again in the next round, and delays no other revision. If it was
        // recorded only in part, `follow_up` completes it then, before it decides which revisions serve.
        let judged = self.judge(&found).await;
        // Loading takes time, so it comes after all other steps.
        let late = self.load_late(&found).await;
        if judged.is_ok() {
            self.serve().await?;
        }
        let tidied = self.tidy(&found).await;
        self.count(&found).await;
        // Only a later process needs the kept bytes, so an error here delays no step.
        *wait = [due, late, self.keep_again().await].into_iter().flatten().min();
        if let Err(error) = self.keep_fitted().await {
            tracing::warn!(%error, "settings that fit are not kept for the next process, which is tried again");
            *wait = Some(wait.unwrap_or(LOOK_AGAIN).min(PATIENCE.0 * 10));
        }
        let settled = self.records.settled();
        match written.and(followed_up).and(retired).and(advanced).and(judged).and(tidied).and(settled) {
            // The next round tries a failed step again. Do not back off, because other packages wait for their turn.
            Err(error) if self.fairness.is_taken() => {
                tracing::warn!(%error, "policies cannot be looked after, and are looked at again");
                *wait = Some(PATIENCE.0);
                Ok(())
            }
            done => done,
        }
    }

    /// Ends in order: records the interrupted checks, so that the next process tries them again.
    pub(super) async fn lay_down(mut self) {
        self.records.settle().await;
        self.checks.keep(|_| false);
        for name in std::mem::take(&mut self.checking) {
            if self.records.status(&name).state != RevisionState::Checking {
                continue;
            }
            let state = Transition::new(
                RevisionState::Pending,
                "Interrupted",
                "the operator was stopped while it checked this",
            );
            // An interrupted check is not the fault of the package.
            let unbegun = |status: &mut PolicyRevisionStatus| {
                status.attempts = status.attempts.map(|attempts| attempts - 1).filter(|attempts| *attempts > 0);
            };
            if let Err(error) = self.enter(&name, state, unbegun).await {
                tracing::warn!(%error, "a check that was interrupted looks like one that brought the process down");
            }
        }
    }
}
