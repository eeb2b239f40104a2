//! Tries settings on the samples of the policies that the settings affect. The check against the schema is not enough,
//! because Kubernetes may refuse a value that the schema accepts. All trials run in the background. Of the trials for
//! tenants, only one runs at a time.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kaos_policy::{gate::LoadError, policy::Policy, settings::Layer};
use tokio::time::Instant;

use super::{
    background::{Background, Stand},
    cases::{Case, Tried, try_all},
    gatekeeper::Gatekeeper,
};
use crate::{processors::Processors, server::TargetServer};

/// Runs trials.
#[derive(Clone)]
pub(super) struct Trier {
    pub(super) gatekeeper: Gatekeeper,
    pub(super) processors: Processors,
    pub(super) server: TargetServer,
    /// The operator's namespace.
    pub(super) home: String,
}

/// The trials. The key of a package's trial is the name of the package's revision. The key of the trial of the
/// operator's own ConfigMap is the name of this ConfigMap.
pub(super) struct SettingsTrials {
    trier: Trier,
    trials: BTreeMap<String, Vec<RunningTrial>>,
    background: Background<(Tried, Duration)>,
}

/// The number of trial results that this process keeps for each revision. There can be two results, because the
/// operator can try a policy with the active settings, and with settings that wait for this policy.
const KEPT: usize = 2;

struct RunningTrial {
    namespace: String,
    cases: Vec<Case>,
    tried: Option<Tried>,
}

impl Trier {
    /// Tries the cases of a package. `namespace` is the namespace of the package.
    async fn try_all(&self, cases: &[Case], namespace: &str) -> Tried {
        try_all(cases, |policy, layers| self.plans_are_valid(policy, layers, namespace)).await
    }

    async fn plans_are_valid(&self, policy: Arc<Policy>, layers: Vec<Layer>, namespace: &str) -> Result<(), LoadError> {
        let Self { gatekeeper, processors, server, home } = self;
        let permit = processors.permit(namespace != home).await;
        gatekeeper.try_settings(policy, layers, server, permit).await
    }
}

impl SettingsTrials {
    /// Starts without any trials.
    pub(super) fn new(trier: Trier) -> Self {
        Self { trier, trials: BTreeMap::new(), background: Background::new() }
    }

    /// Waits until a trial ends.
    pub(super) async fn changed(&self) {
        self.background.changed().await;
    }

    /// Returns the progress of the trial of a revision.
    pub(super) fn stand(&self, revision: &str) -> Stand {
        self.background.stand(revision)
    }

    /// Returns whether the trial of a package of this namespace would start at once.
    pub(super) fn has_room_for(&self, namespace: &str) -> bool {
        let home = &self.trier.home;
        let is_local = |revision: &String| self.last(revision).is_some_and(|trial| trial.namespace != *home);
        namespace == home || !self.background.running().any(is_local)
    }

    /// Starts a trial of these cases, unless the same trial is already running. Ends a trial of other cases for the
    /// same revision.
    pub(super) fn begin(&mut self, revision: &str, namespace: &str, cases: Vec<Case>) {
        let is_same = self.last(revision).is_some_and(|trial| trial.cases == cases);
        if is_same && matches!(self.stand(revision), Stand::UnderWay) {
            return;
        }
        let trial = RunningTrial { namespace: namespace.to_owned(), cases: cases.clone(), tried: None };
        let trials = self.trials.entry(revision.to_owned()).or_default();
        trials.retain(|trial| trial.tried.is_some());
        trials.drain(..trials.len().saturating_sub(KEPT - 1));
        trials.push(trial);
        let (trier, namespace) = (self.trier.clone(), namespace.to_owned());
        self.background.begin(revision, async move {
            let began = Instant::now();
            (trier.try_all(&cases, &namespace).await, began.elapsed())
        });
    }

    /// Stores the result of a trial that ended since the last call, and returns the duration of the trial.
    pub(super) async fn take_up(&mut self, revision: &str) -> Option<Duration> {
        let (tried, time) = self.background.take(revision).await?;
        if let Some(trial) = self.trials.get_mut(revision).and_then(|trials| trials.last_mut()) {
            trial.tried = Some(tried);
        }
        Some(time)
    }

    /// Returns the result of the trial of exactly these cases; `None` if the revision was not tried with these cases.
    pub(super) fn result(&self, revision: &str, cases: &[Case]) -> Option<&Tried> {
        self.trials.get(revision)?.iter().find(|trial| trial.cases == cases)?.tried.as_ref()
    }

    fn last(&self, revision: &str) -> Option<&RunningTrial> {
        self.trials.get(revision)?.last()
    }

    pub(super) fn forget(&mut self, revision: &str) {
        self.keep(|it| it != revision);
    }

    /// Ends and forgets the trials of revisions that are no longer wanted.
    pub(super) fn keep(&mut self, is_wanted: impl Fn(&str) -> bool) {
        self.background.keep(&is_wanted);
        self.trials.retain(|revision, _| is_wanted(revision));
    }
}
