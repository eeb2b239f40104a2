//! Tries settings on the samples of the policies that they affect: Kubernetes may refuse a value that the schema
//! accepts. Settings of packages are tried in the background. Of the namespaces other than the operator's, one package
//! is tried at a time.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kaos_policy::{gate::LoadError, policy::Policy, settings::Layer};
use tokio::time::Instant;

use super::{
    background::{Background, Stand},
    gatekeeper::Gatekeeper,
};
use crate::{catalogue::lasting, processors::Processors, server::TargetServer};

/// The result of a trial.
pub(super) type Tried = Result<(), LoadError>;

/// A policy with the settings that it would have in a place.
#[derive(Clone)]
pub(super) struct Case {
    pub(super) policy: Arc<Policy>,
    pub(super) layers: Vec<Layer>,
    /// The settings without the ones that are tried.
    pub(super) without: Vec<Layer>,
}

impl PartialEq for Case {
    fn eq(&self, other: &Self) -> bool {
        self.policy.id() == other.policy.id() && self.layers == other.layers && self.without == other.without
    }
}

/// Runs trials.
#[derive(Clone)]
pub(super) struct Trier {
    pub(super) gatekeeper: Gatekeeper,
    pub(super) processors: Processors,
    pub(super) server: TargetServer,
    /// The operator's namespace.
    pub(super) home: String,
}

/// The trials of the settings of packages.
pub(super) struct SettingsTrials {
    trier: Trier,
    trials: BTreeMap<String, RunningTrial>,
    background: Background<(Tried, Duration)>,
}

/// The trial of one revision.
struct RunningTrial {
    namespace: String,
    cases: Vec<Case>,
    tried: Option<Tried>,
}

impl Trier {
    /// Tries settings from a namespace. Returns an error only if the plans for the samples are valid without these
    /// settings.
    pub(super) async fn try_all(&self, cases: &[Case], namespace: &str) -> Tried {
        let mut tried = Ok(());
        for Case { policy, layers, without } in cases {
            let Err(error) = self.plans_are_valid(policy, layers, namespace).await else { continue };
            if !error.is_lasting() {
                // The others may show that the settings are wrong.
                tried = Err(error);
                continue;
            }
            let before = self.plans_are_valid(policy, without, namespace).await.map_err(lasting);
            if !matches!(before, Err(Some(_))) {
                return Err(error);
            }
        }
        tried
    }

    async fn plans_are_valid(&self, policy: &Arc<Policy>, layers: &[Layer], namespace: &str) -> Tried {
        let Self { gatekeeper, processors, server, home } = self;
        let permit = processors.permit(namespace != home).await;
        gatekeeper.try_settings(Arc::clone(policy), layers.to_vec(), server, permit).await
    }
}

impl SettingsTrials {
    /// Creates the value without any trial.
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

    /// Returns whether a trial for this namespace would start at once.
    pub(super) fn has_room_for(&self, namespace: &str) -> bool {
        let home = &self.trier.home;
        let is_local = |revision: &String| self.trials.get(revision).is_some_and(|trial| trial.namespace != *home);
        namespace == home || !self.background.running().any(is_local)
    }

    /// Starts to try settings on these cases.
    pub(super) fn begin(&mut self, revision: &str, namespace: &str, cases: Vec<Case>) {
        let trial = RunningTrial { namespace: namespace.to_owned(), cases: cases.clone(), tried: None };
        self.trials.insert(revision.to_owned(), trial);
        let (trier, namespace) = (self.trier.clone(), namespace.to_owned());
        self.background.begin(revision, async move {
            let began = Instant::now();
            (trier.try_all(&cases, &namespace).await, began.elapsed())
        });
    }

    /// Returns how long the trial of a revision took, if it ended since the last call.
    pub(super) async fn take_up(&mut self, revision: &str) -> Option<Duration> {
        let (tried, time) = self.background.take(revision).await?;
        if let Some(trial) = self.trials.get_mut(revision) {
            trial.tried = Some(tried);
        }
        Some(time)
    }

    /// Returns the result for a revision, if it was tried on exactly these cases.
    pub(super) fn result(&self, revision: &str, cases: &[Case]) -> Option<&Tried> {
        self.trials.get(revision).filter(|trial| trial.cases == cases)?.tried.as_ref()
    }

    /// Forgets the trial of a revision.
    pub(super) fn forget(&mut self, revision: &str) {
        self.keep(|it| it != revision);
    }

    /// Ends and forgets the trials of revisions that are no longer wanted.
    pub(super) fn keep(&mut self, is_wanted: impl Fn(&str) -> bool) {
        self.background.keep(&is_wanted);
        self.trials.retain(|revision, _| is_wanted(revision));
    }
}
