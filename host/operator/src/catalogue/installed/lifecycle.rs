//! Moves revisions from state to state. The operator finds a package, checks and admits the package, and lets it serve.
//! Later, another revision replaces the package's revision, or the operator quarantines it. Each round observes the
//! packages and the PolicyRevisions, plans the actions that are due, and executes these actions.
//!
//! | module | content |
//! |---|---|
//! | `observe` | observes the packages and the changes since the last round |
//! | `facts` | facts that follow from the PolicyRevisions and the admitted revisions; pure |
//! | `plan` | computes the actions that are due; pure |
//! | `execute` | executes the actions, one after another |
//! | `reconcile_packages` | decides the next step with each package |
//! | `not_admitted` | the reason why a package does not serve |
//! | `admission` | checks a package |
//! | `default_packages` | the default policies of the process, as packages |
//! | `default_policies` | records the default policies, and compares them with the recorded ones |
//! | `candidate` | a checked revision that is to serve |
//! | `gating` | holds a package whose effect exceeds a limit |
//! | `approval` | reads approvals, and decides when to look at a held package again |
//! | `activating` | lets checked revisions serve if all revisions and settings then fit together |
//! | `code_room` | makes room for the compiled code of a tenant's policy, or refuses the policy |
//! | `overtaken` | decides when the operator tries a refused package again |
//! | `trying` | tries settings before they take effect |
//! | `serving` | swaps in the serving revisions and the settings |
//! | `quarantine` | finds the revisions that failed in service |
//! | `leaving_conflict` | begins the rollout of a revision that waited for a place |
//! | `restoring` | loads recorded revisions |
//! | `not_loadable` | loads policies of tenants in the background, and retries policies that cannot be loaded for now |
//! | `bytes_missing` | replaces active revisions that cannot be loaded any more with their predecessors |
//! | `record_deleted` | writes PolicyRevisions and stored bytes again after a user deleted them |
//! | `renaming` | finds the predecessor of a renamed ConfigMap |
//! | `rollout` | moves the objects to a revision in steps |
//! | `revision_history` | counts objects, and deletes old PolicyRevisions |
//! | `budgets` | records in which namespaces objects wait because a budget is used up |
//! | `enter` | records the state that a revision enters, and writes an Event |
//! | `naming`, `transition` | the names of revisions, and the state that a revision enters |

mod activating;
mod admission;
mod approval;
mod budgets;
mod bytes_missing;
mod candidate;
mod code_room;
mod default_packages;
mod default_policies;
mod enter;
mod execute;
mod facts;
mod gating;
mod leaving_conflict;
mod naming;
mod not_admitted;
mod not_loadable;
mod observe;
mod overtaken;
mod plan;
mod quarantine;
#[cfg(test)]
mod random;
mod rebuilds;
mod reconcile_packages;
mod record_deleted;
mod renaming;
mod restoring;
mod revision_history;
mod rollout;
mod serving;
mod transition;
mod trying;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use kaos_crds::{PolicyRevisionStatus, RevisionState};
use kaos_policy::settings::{Layer, Origin};
use tokio::time::Instant;

pub(crate) use self::{
    bytes_missing::is_withheld,
    rollout::{RolloutVerb, next_request},
};
use self::{default_packages::DefaultPolicies, transition::Transition};
use super::{
    Installing, StepError, Tools,
    checks::Checks,
    events::Events,
    last_good_settings::LastGoodSettings,
    pace::{ATTEMPTS, BACKOFF, LOOK_AGAIN},
    previews::Previews,
    questions::Questions,
    records::Records,
    revision_set::{Content, RevisionSet},
    settings_trials::{SettingsTrials, Trier},
    sources::{Found, Held, Sources},
    store::Store,
    tenant_fairness::TenantFairness,
};
use crate::{package::Package, server::TargetServer};

/// The state of all installed policies.
pub(super) struct Lifecycle {
    tools: Tools,
    settings: Vec<Layer>,
    /// The content of the operator's own ConfigMap at startup.
    began_with: Option<Layer>,
    checks: Checks,
    trials: SettingsTrials,
    questions: Questions,
    previews: Previews,
    sources: Sources,
    defaults: DefaultPolicies,
    records: Records,
    store: Store,
    last_good: LastGoodSettings,
    events: Events,
    fairness: TenantFairness,
    revisions: RevisionSet,
    /// Whether the revisions that served before this process started are loaded, except the revisions in `loading`.
    restored: bool,
    /// Tenants' policies that served before this process started. The operator loads them in the background. The value
    /// lists the revisions that are not loaded yet: first the possible fallbacks, then the policy itself.
    loading: BTreeMap<String, VecDeque<String>>,
    /// Revisions that the operator compiles so that they can serve again, each in the place of a quarantined revision.
    /// An entry's value is true if no policy answers in the place of the quarantined revision until the compilation
    /// ends.
    restoring: BTreeMap<String, bool>,
    /// The serving revisions and the content of the operator's own ConfigMap at the last swap. The next round compares
    /// these values with the current state to decide whether another swap is needed.
    installed: Option<(BTreeSet<String>, Option<Layer>)>,
    /// The content of the operator's own ConfigMap in the last round, whether or not this content fits the policies.
    looked_under: Option<Layer>,
    /// The last reported reason why the operator's own ConfigMap is not used.
    misfit: Option<String>,
    /// The last reported variables of the operator's own ConfigMap that are probably misspelled.
    misspelt: String,
    /// Revisions that this process has started to check.
    checking: BTreeSet<String>,
    /// Revisions that passed the gate and wait for a change outside their own package.
    waiting: BTreeMap<String, Content>,
    /// Revisions for which the API server confirmed that the operator has the rights for their claims. Their trial or
    /// preview is not finished yet.
    permitted: BTreeSet<String>,
    /// For each refused or held revision, the other revisions and the approvals on which the refusal or the hold
    /// depended when it began. If these revisions or approvals change, the operator checks the refused or held revision
    /// again.
    refused_under: BTreeMap<String, BTreeSet<String>>,
    /// The serving revisions whose source was deleted.
    without_source: BTreeSet<String>,
    /// For each revision that waits for a change outside its own package, the time of the next attempt.
    due: BTreeMap<String, Instant>,
    /// For each revision, the retry annotation at the last attempt to load the revision again. A new value of the
    /// annotation causes an immediate attempt.
    tried_for: BTreeMap<String, Option<String>>,
    /// Serving revisions whose stored bytes may be missing, with the package to store again.
    unkept: BTreeMap<String, Arc<Package>>,
    /// The time of the next attempt to store the packages in `unkept`. `None` before the first attempt.
    keep_due: Option<Instant>,
    /// Revisions for which this process has counted the objects: revisions that this process admitted, and revisions
    /// whose objects all had a pass since this process started.
    counted: BTreeSet<String>,
    /// The PolicyRevision that the operator failed to delete in the last attempt.
    stuck: Option<String>,
    /// The facts that this process remembers between two looks at the objects of each open rollout.
    rollouts: BTreeMap<String, rollout::RolloutLooks>,
}

impl Lifecycle {
    pub(super) fn new(
        tools: Tools,
        Installing { own, settings, defaults, gatekeeper, .. }: Installing,
        sources: Sources,
        records: Records,
        store: Store,
    ) -> Self {
        let is_copy = |layer: &Layer| layer.origin == Origin::OperatorConfig;
        let (copies, settings): (Vec<_>, Vec<_>) = settings.into_iter().partition(is_copy);
        let began_with = copies.into_iter().next();
        let last_good = LastGoodSettings::new(tools.client.clone(), &tools.duties.operator_namespace);
        let events = Events::new(Arc::clone(&tools.events), tools.clock);
        let fairness = TenantFairness::new(&tools.duties.operator_namespace);
        let server = TargetServer::Running(tools.client.clone());
        let (home, processors) = (tools.duties.operator_namespace.clone(), tools.processors.clone());
        let checks = Checks::new(gatekeeper.clone(), processors.clone(), server.clone(), &home);
        let trier = Trier { gatekeeper, processors, server, home };
        let trials = SettingsTrials::new(trier);
        let questions = Questions::new(tools.client.clone(), &tools.duties.operator_namespace);
        let previews = Previews::new(Arc::clone(&tools.previewer));
        let defaults = DefaultPolicies::new(defaults, &tools.duties.operator_namespace);
        let revisions = RevisionSet { own, entries: BTreeMap::new() };
        Self {
            tools,
            settings,
            began_with,
            checks,
            trials,
            questions,
            previews,
            sources,
            defaults,
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
            misspelt: String::new(),
            checking: BTreeSet::new(),
            waiting: BTreeMap::new(),
            permitted: BTreeSet::new(),
            refused_under: BTreeMap::new(),
            without_source: BTreeSet::new(),
            due: BTreeMap::new(),
            tried_for: BTreeMap::new(),
            unkept: BTreeMap::new(),
            keep_due: None,
            counted: BTreeSet::new(),
            stuck: None,
            rollouts: BTreeMap::new(),
        }
    }

    /// Waits for a change of a package or a PolicyRevision, or for the end of a check, a trial, a preview or a question
    /// to the API server.
    pub(super) async fn changed(&self) {
        tokio::select! {
            () = self.sources.changed() => {}
            () = self.records.changed() => {}
            () = self.checks.changed() => {}
            () = self.trials.changed() => {}
            () = self.questions.changed() => {}
            () = self.previews.changed() => {}
        }
    }

    /// Runs one round. Returns the delay after which the next round starts even if nothing changes, and the error of a
    /// failed step of this round.
    pub(super) async fn settle(&mut self) -> (Option<Duration>, Result<(), StepError>) {
        let mut wait = None;
        let done = self.round(&mut wait).await;
        (wait, done)
    }

    /// Observes the packages and the PolicyRevisions, plans the actions that are due, and executes these actions. After
    /// the recorded revisions are restored, a step that fails does not delay other steps. The next round tries the
    /// failed step again.
    async fn round(&mut self, wait: &mut Option<Duration>) -> Result<(), StepError> {
        let Some(found) = self.observe_packages(wait).await? else { return Ok(()) };
        self.take_up_changes(&found).await;
        let begins = !self.restored;
        if begins {
            self.tools.catalogue.remember(self.records.answered());
            self.compare_defaults();
            Box::pin(self.restore(&found)).await?;
            self.leave_settings_to_revisions();
            self.replace_unfit_defaults().await;
            self.restored = true;
        }
        let planned = self.execute_all(&found, &BTreeMap::new()).await.done;
        // First let the policies serve that served before this process started, then check new packages. On a cluster
        // without installed policies, first check all new packages: otherwise passes would apply the children of the
        // default policies, and soon change these children for the new packages.
        let is_fresh = self.installed.is_none() && self.revisions.entries.is_empty();
        let goes_on = begins && (found.is_empty() || !is_fresh);
        let went_on = if goes_on { self.serve().await } else { Ok(()) };
        let (due, advanced) = Box::pin(self.advance_all(&found, is_fresh)).await;
        // Judge failures only after the round has admitted new packages: a new package can replace the revision that
        // failed.
        let rolled = self.roll_out(&found).await;
        let mut failed = self.failed_in_service();
        failed.extend(rolled.returned);
        let judged = self.execute_all(&found, &failed).await;
        // Load revisions after all other steps, because a load takes time.
        let late = Box::pin(self.load_late(&found)).await;
        // If the predecessor of a quarantined revision could not be restored, do not swap: the policies that serve now
        // keep serving.
        let served = if judged.lacks_predecessor { Ok(()) } else { self.serve().await };
        let recording = self.record_defaults().await;
        if self.loading.is_empty() {
            self.checks.drop_prepared();
        }
        let tidied = self.tidy(&found).await;
        self.count(&found).await;
        let budgets = self.note_budgets().await;
        // Only a later process needs the stored bytes. So no other step waits for a failed write of these bytes.
        let kept = [self.keep_again().await, self.keep_last_good().await];
        let restoration = self.next_restoration(&found);
        *wait = [due, late, rolled.wait, recording, restoration, budgets].into_iter().chain(kept).flatten().min();
        let results = [planned, went_on, advanced, rolled.done, judged.done, served, tidied, self.records.settled()];
        match results.into_iter().collect::<Result<(), _>>() {
            // Retry without a growing delay, because other packages wait for their turn.
            Err(error) if self.fairness.is_taken() => {
                tracing::warn!(%error, "policy lifecycle step failed; retrying in {:?}", BACKOFF.first);
                *wait = Some(BACKOFF.first);
                Ok(())
            }
            done => done,
        }
    }

    /// Shuts down: records the interrupted checks, so that the next process starts them again.
    pub(super) async fn lay_down(mut self) {
        self.records.settle().await;
        self.checks.keep(|_| false);
        for name in std::mem::take(&mut self.checking) {
            if !matches!(self.records.status(&name).state, RevisionState::Checking | RevisionState::Previewing) {
                continue;
            }
            let state =
                Transition::new(RevisionState::Pending, "Interrupted", "the operator was stopped during the check");
            // Do not count the interrupted attempt: the package did not cause the shutdown.
            let unbegun = |status: &mut PolicyRevisionStatus| {
                status.attempts = status.attempts.map(|attempts| attempts - 1).filter(|attempts| *attempts > 0);
            };
            if let Err(error) = self.enter(&name, state, unbegun).await {
                tracing::warn!(%error, "could not record an interrupted policy check; the next process will assume \
                    that the check crashed this process");
            }
        }
    }
}
