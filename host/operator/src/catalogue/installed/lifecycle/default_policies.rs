//! Records the default policies that serve. At the start of a process, lets the recorded default policies of another
//! version of the operator continue to serve.
//!
//! If no other default policy is recorded, the policy of the process answers, without a revision, and the operator
//! records it. Otherwise the operator treats the policy of the process like new content of a ConfigMap: the policy goes
//! through the lifecycle of packages.

use std::{sync::Arc, time::Duration};

use kaos_crds::{PolicyRevisionStatus, PolicySource, RevisionState};
use tokio::time::Instant;

use super::{
    BACKOFF, Lifecycle, StepError, Transition,
    default_packages::{AnswersAs, DefaultPackage, gives_way},
    execute::end,
};
use crate::{
    catalogue::installed::{
        records::{NOT_LOADED, Revision},
        revision_set::Content,
        store::Taken,
    },
    timestamps::written,
};

/// The delay after which the operator tries again to record a default policy.
const RECORD_AGAIN: Duration = Duration::from_secs(30);

impl Lifecycle {
    /// Compares the default policies of this process with the recorded ones. A default policy of this process answers
    /// as a revision if its own rollout is running. The policy also answers as a revision if another default policy
    /// with the same source serves or has to serve again.
    pub(super) fn compare_defaults(&mut self) {
        let facts = self.facts();
        let has_changed = |default: &&DefaultPackage| {
            let others = facts
                .records
                .iter()
                .filter(|(name, revision)| revision.spec.source == default.found.source && **name != default.revision);
            let others: Vec<RevisionState> = others.map(|(name, _)| facts.state(name)).collect();
            let own = facts.status(&default.revision);
            let failed = own.is_some_and(|status| status.state == RevisionState::Quarantined);
            others.iter().any(|state| state.is_let_in())
                || own.is_some_and(|status| status.open_rollout().is_some())
                || (failed && others.iter().any(|state| state.is_replaced()))
        };
        let changed: Vec<PolicySource> =
            self.defaults.all.iter().filter(has_changed).map(|default| default.found.source.clone()).collect();
        for source in changed {
            tracing::info!(source = source.config_map, "another default policy served before this version");
            self.defaults.set(&source, AnswersAs::Revision);
        }
    }

    /// Lets the policies of this process serve instead of recorded default policies that do not fit the settings of
    /// this process. Skips a default policy that is being rolled out: like the rollout of a package, its rollout waits
    /// until the settings change.
    pub(super) async fn replace_unfit_defaults(&mut self) {
        loop {
            let serving = self.facts().serving();
            let Err(unfit) = self.revisions.arrange(&serving, &self.settings) else { return };
            let concerned = unfit.concerned.iter().find_map(|name| {
                self.records
                    .get(name)
                    .filter(|revision| self.revisions.entries.contains_key(&**name) && gives_way(revision))
            });
            let Some(revision) = concerned.cloned() else { return };
            self.replace_unloadable(&revision, &unfit.message).await;
        }
    }

    /// Removes the settings of default policies that answer as revisions from the settings of the process.
    pub(super) fn leave_settings_to_revisions(&mut self) {
        let defaults = &self.defaults;
        self.settings.retain(|layer| !defaults.is_of_revision(layer));
    }

    /// Lets the policy of this process serve instead of a recorded default policy that this process cannot load.
    pub(super) async fn replace_unloadable(&mut self, revision: &Revision, why: &str) {
        let name = revision.metadata.name.clone().unwrap_or_default();
        tracing::error!(revision = name, why, "default policy of another version cannot be loaded");
        let message = format!(
            "this version of the operator cannot load this default policy ({why}), so the default policy of this \
             version serves at once"
        );
        self.revisions.entries.remove(&name);
        self.enter_or_owe(&name, Transition::new(RevisionState::Superseded, NOT_LOADED, message), end).await;
        let others = self.facts().others_of(&name, &revision.spec.source).next().is_some();
        if !others {
            self.defaults.set(&revision.spec.source, AnswersAs::Process { is_recorded: false });
        }
    }

    /// Records the default policies that answer as policies of the process. Returns the delay until the next attempt,
    /// or `None` if all are recorded.
    pub(super) async fn record_defaults(&mut self) -> Option<Duration> {
        if self.installed.is_none() || self.defaults.are_none() {
            return None;
        }
        let now = Instant::now();
        let is_due = self.defaults.due.is_none_or(|due| due <= now);
        let mut unrecorded = 0;
        for at in 0..self.defaults.all.len() {
            let AnswersAs::Process { is_recorded } = self.defaults.all[at].answers else { continue };
            let revision = self.defaults.all[at].revision.clone();
            if is_recorded && self.records.status(&revision).state == RevisionState::Active {
                continue;
            }
            let recorded = if is_due { self.record_default(at).await } else { Ok(false) };
            let is_recorded = match recorded {
                Ok(is_recorded) => is_recorded,
                Err(error) => {
                    tracing::warn!(revision, %error, "default policy could not be recorded; the next version of the \
                        operator will serve its own default policies at once");
                    false
                }
            };
            self.defaults.all[at].answers = AnswersAs::Process { is_recorded };
            unrecorded += usize::from(!is_recorded);
        }
        self.tools.metrics.unrecorded_defaults(unrecorded);
        if unrecorded == 0 {
            self.defaults.due = None;
            return None;
        }
        if is_due {
            self.defaults.due = Some(now + RECORD_AGAIN);
        }
        Some(self.defaults.due.map_or(BACKOFF.first, |due| due.saturating_duration_since(now)))
    }

    /// Records one default policy: first its bytes, then its state. Returns whether it is recorded.
    async fn record_default(&mut self, at: usize) -> Result<bool, StepError> {
        let default = &self.defaults.all[at];
        let (name, policy, package) =
            (default.revision.clone(), Arc::clone(&default.policy), Arc::clone(&default.package));
        if self.records.get(&name).is_none() {
            let spec = default.found.held.as_ref().map(|held| self.spec_of(&default.found, held));
            self.records.create(&name, spec.unwrap_or_default()).await?;
        }
        let Some(revision) = self.records.get(&name).cloned() else { return Ok(false) };
        if !self.store.keeps(&revision).await?
            && let Err(Taken(config_map)) = self.store.keep(&revision, &package).await?
        {
            tracing::warn!(
                revision = name,
                config_map,
                "default policy cannot be stored until this ConfigMap is deleted"
            );
            return Ok(false);
        }
        let status = self.records.status(&name);
        if status.state == RevisionState::Active && status.reason.as_deref() != Some(NOT_LOADED) {
            return Ok(true);
        }
        let now = self.tools.clock.now();
        let serves = Transition::new(RevisionState::Active, "Active", "");
        let content = Content::Policy(policy, package.file.settings.clone());
        let describe = |status: &mut PolicyRevisionStatus| {
            end(status);
            if let Content::Policy(policy, _) = &content {
                status.policy = Some(policy.id().name.clone());
                status.version = Some(policy.id().version.clone());
                status.script_engine = policy.script_engine().map(|engine| engine.to_string());
                status.answers_digest = policy.answers().map(|digest| digest.to_string());
            }
            (status.kinds, status.predecessor, status.preview) = (content.kinds(), None, None);
            (status.since, status.claimed) = (Some(written(now)), Some(now.to_string()));
        };
        self.enter(&name, serves, describe).await
    }
}
