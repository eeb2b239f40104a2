//! Swaps in the serving revisions and the settings of the operator's own ConfigMap, and stores these settings for the
//! next process.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use kaos_crds::{PolicyRevisionStatus, RevisionState};
use kaos_policy::settings::Layer;

use super::{
    BACKOFF, Lifecycle, StepError, Transition, activating::fits_after, rollout::ROLLING_OUT, trying::ConfigTrial,
};
use crate::{
    catalogue::{
        Arranged, Conflict, PLACE_TAKEN,
        installed::{observed::ANOTHER_ROLLOUT, revision_set::Unfit},
    },
    config_maps::OPERATOR_CONFIG,
};

impl Lifecycle {
    /// Swaps in the revisions that should serve, if these revisions or the settings changed.
    pub(super) async fn serve(&mut self) -> Result<(), StepError> {
        if self.restoring.iter().any(|(name, is_alone)| *is_alone && !self.is_held_open(name)) {
            // A policy of the operator's namespace is being restored. Do not swap until this policy is loaded:
            // otherwise another policy would answer for its objects, and would create different children.
            let what = "the predecessor of a quarantined policy is being loaded";
            self.tools.catalogue.waits_for(what.to_owned());
            return Ok(());
        }
        let (mut serving, config) = (self.facts().serving(), self.config());
        // Include revisions that are still being restored, so that no other policy answers in their places.
        serving.extend(self.held_open().cloned());
        self.inherit(&serving);
        if self.installed.as_ref().is_some_and(|installed| installed.0 == serving && installed.1 == config) {
            self.fits();
            return Ok(());
        }
        let kept_out = self.kept_out(&serving);
        let answering: BTreeSet<String> =
            serving.iter().filter(|name| !kept_out.contains_key(name.as_str())).cloned().collect();
        let mut begun = self.begin_rollouts(&answering);
        let Some((mut arranged, config)) = self.arranged_under(config, &serving, &answering).await? else {
            return Ok(());
        };
        let mut conflicts = std::mem::take(&mut arranged.conflicts);
        conflicts.extend(kept_out);
        // Swap before the status writes, so that the swap does not wait for them. The operator repeats a failed write
        // later.
        self.tools.catalogue.install_while(self.loading_places(&serving), arranged);
        let mut written = Ok(());
        for name in &serving {
            if self.revisions.is_open(name, &serving) {
                continue;
            }
            let status = self.records.status(name);
            match (conflicts.get(name.as_str()), status.state) {
                (Some(why), state)
                    if state != RevisionState::Conflict || status.message.as_ref() != Some(&why.message) =>
                {
                    let waits = Transition::new(RevisionState::Conflict, why.reason, &why.message);
                    self.end_stage(name);
                    self.enter_or_owe(name, waits, |status| status.rollout = None).await;
                }
                (None, RevisionState::Conflict) => {
                    let before = self.revisions.entries.get(name).and_then(|entry| entry.predecessor.clone());
                    let rollout = begun.remove(name);
                    let describe = |status: &mut PolicyRevisionStatus| {
                        (status.predecessor, status.rollout) = (before, rollout.clone());
                    };
                    let Some(summary) = rollout.as_ref().map(|rollout| rollout.summary.clone()) else {
                        let serves = Transition::new(RevisionState::Active, "Active", "");
                        self.enter_or_owe(name, serves, describe).await;
                        continue;
                    };
                    // This write must succeed: if the PolicyRevision lacked the rollout, the next process would let the
                    // revision serve all objects at once.
                    let begins = Transition::new(RevisionState::Active, ROLLING_OUT, summary);
                    written = written.and(self.enter(name, begins, describe).await.map(drop));
                }
                _ => {}
            }
        }
        if self.installed.as_ref().is_some_and(|(_, before)| *before != config) {
            self.tell_change();
        }
        self.tell_misspelt(config.as_ref()).await;
        self.installed = Some((serving, config));
        if written.is_err() {
            self.swap_again();
        }
        written
    }

    /// Returns the policy table of the revisions in `answering`, and the content of the operator's own ConfigMap that
    /// is in effect for this table. While the current content does not fit the policies, or while its trial runs, the
    /// last good settings are in effect. Returns `None` if there must be no swap now.
    async fn arranged_under(
        &mut self,
        config: Option<Layer>,
        serving: &BTreeSet<String>,
        answering: &BTreeSet<String>,
    ) -> Result<Option<(Arranged, Option<Layer>)>, StepError> {
        let trial = match self.revisions.arrange(answering, &self.shared(config.as_ref())) {
            Ok(arranged) => match self.try_config(config.as_ref(), &arranged).await {
                ConfigTrial::Fits => {
                    self.fits();
                    return Ok(Some((arranged, config)));
                }
                other => other,
            },
            Err(unfit) => ConfigTrial::Unfit(unfit),
        };
        let is_first = self.installed.is_none();
        match trial {
            ConfigTrial::Unfit(unfit) => self.tell_misfit(unfit).await,
            // A process that just started waits for the end of the trial: otherwise pods could restart twice, first for
            // the last good settings and then for the new settings.
            _ if is_first => {
                self.tools
                    .catalogue
                    .waits_for(format!("the operator tries the settings of ConfigMap {OPERATOR_CONFIG}"));
                return Ok(None);
            }
            _ => {}
        }
        let fitted = match &self.installed {
            Some((before, _)) if before == serving => return Ok(None),
            // If the serving revisions changed before the trial ends, swap them in with the last good settings.
            Some((_, fitted)) => fitted.clone(),
            // A process that just started reads the settings that the previous process stored.
            None => match self.last_good.get().await? {
                Some(fitted) => Some(fitted),
                None => return Ok(None),
            },
        };
        let arranged = self.revisions.arrange(answering, &self.shared(fitted.as_ref()));
        Ok(arranged.ok().map(|arranged| (arranged, fitted)))
    }

    /// Reports variables of the operator's own ConfigMap that are probably misspelled. Reports the same variables only
    /// once.
    async fn tell_misspelt(&mut self, config: Option<&Layer>) {
        let own = self.revisions.own.iter().map(|offer| &offer.member.policy);
        let shipped = self.revisions.entries.values().filter_map(|entry| entry.content.policy());
        let schemas = own.chain(shipped).map(|policy| policy.schema());
        let slips = config.map(|config| config.misspelt(schemas)).unwrap_or_default();
        let told = |(variable, meant): &(&str, &str)| {
            format!(
                "no setting reads variable {variable}: did you mean \
            {meant}?"
            )
        };
        let message = slips.iter().map(told).collect::<Vec<_>>().join(" ");
        if self.misspelt == message {
            return;
        }
        if !message.is_empty() {
            let message = format!("ConfigMap {OPERATOR_CONFIG}: {message}");
            tracing::warn!(message, "variables without a setting are ignored");
            if let Some(config_map) = self.sources.config_map() {
                self.events.warn(&config_map, "BadSettings", &message).await;
            }
        }
        self.misspelt = message;
    }

    /// Logs the settings that are in effect from now on.
    fn tell_change(&self) {
        let holds = match (self.sources.config(), &self.began_with) {
            (Some(_), _) => "settings changed; the new settings are in effect",
            (None, Some(_)) => "settings were deleted; the settings from the start of this process are in effect",
            (None, None) => "settings were deleted; the defaults are in effect",
        };
        tracing::info!(config_map = OPERATOR_CONFIG, "{holds}");
    }

    /// Records that the settings of the operator's own ConfigMap are in effect. If these settings were not in effect
    /// before, retries the revisions that waited for the settings.
    fn fits(&mut self) {
        if self.misfit.take().is_some() {
            self.due.clear();
        }
    }

    /// Reports why the operator's own ConfigMap is not used. Reports the same reason only once.
    async fn tell_misfit(&mut self, Unfit { reason, message, before, .. }: Unfit) {
        // The serving revisions were checked when they were admitted, so the cause is this ConfigMap. The ConfigMap may
        // also contain settings that only fit a revision that is being rolled out: then wait for the end of the
        // rollout.
        let (reason, message) =
            if before.is_empty() { (reason, message) } else { (ANOTHER_ROLLOUT, fits_after(&before, &message)) };
        let message = format!("ConfigMap {OPERATOR_CONFIG}: {message}");
        self.tools.catalogue.waits_for(message.clone());
        if self.misfit.as_ref() == Some(&message) {
            return;
        }
        tracing::error!(message, "settings do not fit the policies and are not used");
        if let Some(config_map) = self.sources.config_map() {
            self.events.warn(&config_map, reason, &message).await;
        }
        self.misfit = Some(message);
    }

    /// Stores the settings of the last swap, for a process that starts while the content of the ConfigMap does not fit
    /// the policies. Returns the delay before the next attempt if the write failed.
    pub(super) async fn keep_last_good(&mut self) -> Option<Duration> {
        let (_, config) = self.installed.as_ref()?;
        let error = self.last_good.keep(config.as_ref()).await.err()?;
        let wait = BACKOFF.first * 10;
        tracing::warn!(%error, "last good settings could not be stored for the next process; retrying in {wait:?}");
        Some(wait)
    }

    /// Returns the revisions that must keep waiting for a place. A revision keeps waiting for one of three reasons: the
    /// lost revision that has the place may be loaded again, the effect of the waiting revision is not known yet, or
    /// the waiting revision cannot begin its rollout. Without the first reason, pods could restart twice: for the
    /// waiting revision, and again when the lost revision is loaded.
    pub(super) fn kept_out(&self, serving: &BTreeSet<String>) -> BTreeMap<Arc<str>, Conflict> {
        let waiting = serving.iter().filter(|name| self.records.status(name).state == RevisionState::Conflict);
        let kept_out = waiting.filter_map(|name| {
            let entry = self.revisions.entries.get(name)?;
            let limited = || self.is_gated(name, entry).then(|| self.conflict_of(name));
            let beside = || self.waits_in_conflict(name, entry, serving);
            let why = self.revisions.kept_out(entry, serving).or_else(limited).or_else(beside)?;
            Some((name.as_str().into(), why))
        });
        kept_out.collect()
    }

    /// Returns the conflict that the PolicyRevision of a waiting revision contains.
    fn conflict_of(&self, name: &str) -> Conflict {
        let status = self.records.status(name);
        Conflict { reason: PLACE_TAKEN, message: status.message.unwrap_or_default() }
    }

    /// Returns the revisions that wait for a place in which another revision serves.
    pub(super) fn waiting_for_a_place(&self) -> BTreeSet<String> {
        let mut waiting = self.facts().serving();
        waiting.retain(|name| self.records.status(name).state == RevisionState::Conflict);
        waiting
    }

    /// Makes the next round swap in a new policy table, although the same revisions serve.
    ///
    /// The next round keeps the settings that are in effect.
    pub(super) fn swap_again(&mut self) {
        if let Some((serving, _)) = &mut self.installed {
            // No revision has this name. An empty set would not cause a swap if no revision serves any more, because
            // the next set is then empty too.
            *serving = BTreeSet::from([String::new()]);
        }
    }

    /// Returns the settings of the operator's own ConfigMap. If a user deleted the ConfigMap, returns the settings that
    /// the ConfigMap had at startup. `None` if the ConfigMap never existed.
    pub(super) fn config(&self) -> Option<Layer> {
        self.sources.config().or_else(|| self.began_with.clone())
    }

    /// Returns the last good settings: the settings of the operator's own ConfigMap that are in effect.
    pub(super) fn held_config(&self) -> Option<Layer> {
        match &self.installed {
            Some((_, config)) => config.clone(),
            None => self.config(),
        }
    }

    /// Returns the settings for the whole cluster, with `config` as the layer of the operator's own ConfigMap.
    pub(super) fn shared(&self, config: Option<&Layer>) -> Vec<Layer> {
        self.settings.iter().chain(config).cloned().collect()
    }
}
