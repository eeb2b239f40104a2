//! Lets a checked revision serve if it can serve together with all other serving revisions and settings.
//!
//! Sometimes a policy fits only new settings, and these settings fit only this policy. Then the policy and the settings
//! start to serve at the same time. The two cannot start one after the other, because the new settings replace active
//! settings of the same ConfigMap.

use std::{collections::BTreeSet, sync::Arc};

use kaos_crds::{PolicyRevisionStatus, RevisionState};
use kaos_policy::settings::{Layer, Origin};

use super::{
    Found, Lifecycle, StepError, Transition, candidate::Candidate, gating::GateAnswer, not_admitted::NotAdmitted,
    plan::Action, rollout::ROLLING_OUT,
};
use crate::{
    catalogue::{
        Reach,
        installed::{
            cases::{BAD_SETTINGS, Misfit, SETTINGS_DO_NOT_FIT},
            observed::ANOTHER_ROLLOUT,
            revision_set::{AdmittedRevision, Content, Unfit, moved_by},
            store::Taken,
        },
    },
    config_maps::OPERATOR_CONFIG,
    package::Package,
    timestamps::written,
};

/// The answer to the question whether candidates can serve together.
enum Verdict {
    /// The candidates can serve together. The value contains all revisions that then serve, including the candidates.
    Fit(BTreeSet<String>),
    /// The answer is still open: a trial runs or waits for its turn.
    Open,
    Unfit(NotAdmitted),
}

impl Lifecycle {
    /// Lets a revision serve if it can serve together with all other serving revisions. The earlier revision of the
    /// same source stops serving. Returns `None` while the operator tries the settings or computes the effect.
    pub(super) async fn activate(
        &mut self,
        mut candidate: Candidate,
        found: &[Found],
    ) -> Result<Option<Result<(), NotAdmitted>>, StepError> {
        candidate.succeeds = self.left_in_place(&candidate.name, &candidate.entry);
        let mut alone = vec![candidate.clone()];
        let unfit = match self.weigh(&mut alone).await {
            Verdict::Fit(serving) => return self.let_in_gated(alone, &serving).await,
            Verdict::Open => return Ok(None),
            Verdict::Unfit(unfit) => unfit,
        };
        let mut together = self.settings_for(&candidate, found);
        if unfit.transition.reason != SETTINGS_DO_NOT_FIT || together.is_empty() {
            return Ok(Some(Err(unfit)));
        }
        together.push(candidate);
        match self.weigh(&mut together).await {
            // Admit the settings before the policy: if this process ends between the two, the next process still checks
            // the policy.
            Verdict::Fit(serving) => self.let_in_gated(together, &serving).await,
            Verdict::Open => Ok(None),
            Verdict::Unfit(_) => Ok(Some(Err(unfit))),
        }
    }

    /// Returns the packages with settings for a policy that do not serve, because the operator refused or holds them,
    /// or because they wait. Only returns settings that would replace active settings of the same ConfigMap.
    fn settings_for(&self, Candidate { entry, .. }: &Candidate, found: &[Found]) -> Vec<Candidate> {
        let Content::Policy(policy, _) = &entry.content else { return Vec::new() };
        let settings = found.iter().filter(|found| found.source.namespace == entry.source.namespace);
        let next = settings.filter_map(|found| {
            let (name, package) = (self.name_of(found)?, found.package()?);
            let status = &self.records.get(&name)?.status.clone().unwrap_or_default();
            let waits = match status.state {
                RevisionState::Pending | RevisionState::Held => true,
                RevisionState::Refused => status.reason.as_deref() == Some(BAD_SETTINGS),
                _ => false,
            };
            let replaces = self.facts().others_of(&name, &found.source).next().is_some();
            if !package.is_settings_for(&policy.id().name) || !waits || !replaces {
                return None;
            }
            let content = Content::Settings(policy.id().name.clone(), package.file.settings.clone());
            let entry = entry_of(found, package, self.reach(&found.source, package).ok()?, content);
            Some(Candidate::new(&name, entry, Arc::clone(package)))
        });
        next.collect()
    }

    /// Adds the candidates to the admitted revisions, and returns whether they can serve together. If the candidates
    /// cannot serve together, or if the answer is still open, removes the candidates again. [`Verdict::Unfit`] contains
    /// the reason why the last candidate does not serve.
    async fn weigh(&mut self, candidates: &mut [Candidate]) -> Verdict {
        let serving = self.propose(candidates);
        let verdict = self.judge(candidates, serving).await;
        if !matches!(verdict, Verdict::Fit(_)) {
            self.withdraw(candidates);
        }
        verdict
    }

    /// Adds the candidates and their claims to the admitted revisions. Returns all revisions that would then serve,
    /// including the candidates.
    fn propose(&mut self, candidates: &mut [Candidate]) -> BTreeSet<String> {
        let (mut serving, now) = (self.facts().serving(), self.tools.clock.now());
        for Candidate { name, entry, before, succeeds, .. } in &mut *candidates {
            *before = self.facts().others_of(name, &entry.source).chain(succeeds.as_ref()).cloned().collect();
            entry.predecessor = match before.first() {
                Some(before) => self.predecessor_after(name, before),
                None => self.served_before(name, entry),
            };
            entry.since = Some(now);
            serving.retain(|other| !before.contains(other));
        }
        let waiting = self.waiting_for_a_place();
        for Candidate { name, entry, kept, .. } in &mut *candidates {
            *kept = self.revisions.entries.insert(name.clone(), entry.clone());
            serving.insert(name.clone());
        }
        for Candidate { name, entry, before, .. } in candidates {
            let earlier = self.revisions.claimed(before);
            self.revisions.claim(name, earlier, &serving, &waiting, now);
            if let Some(claiming) = self.revisions.entries.get(name) {
                entry.age.clone_from(&claiming.age);
            }
        }
        serving
    }

    fn withdraw(&mut self, candidates: &mut [Candidate]) {
        for Candidate { name, kept, .. } in candidates {
            self.revisions.put_back(name, kept.take());
        }
    }

    /// Returns whether the proposed candidates can serve. First checks all settings against their schemas, then tries
    /// the samples.
    async fn judge(&mut self, candidates: &[Candidate], serving: BTreeSet<String>) -> Verdict {
        let Some(Candidate { name, entry, .. }) = candidates.last() else { return Verdict::Fit(serving) };
        let config = self.config();
        let arrange = |shared: &[Layer]| self.revisions.arrange_with(Some(name), &serving, shared);
        let arranged = match arrange(&self.shared(config.as_ref())) {
            Ok(arranged) => arranged,
            Err(Unfit { message, before, .. }) if !before.is_empty() => {
                return Verdict::Unfit(self.waits_for_end(name, entry, &before, &message));
            }
            // The cause is the operator's own ConfigMap: without it, all revisions could serve together. So the
            // revision waits until the owner corrects this ConfigMap.
            Err(Unfit { reason, message, .. }) if arrange(&self.settings).is_ok() => {
                return Verdict::Unfit(self.waits_for_config(name, entry, reason, &message));
            }
            Err(unfit) => {
                let (reason, message) = unfit.told_of(&entry.content);
                return Verdict::Unfit(NotAdmitted::refused(reason, message));
            }
        };
        if let Some(waits) = self.waits_for_policy(entry, &serving) {
            return Verdict::Unfit(waits);
        }
        let mut cases = Vec::new();
        for Candidate { name, entry, .. } in candidates {
            match self.cases_of(name, &serving, &arranged) {
                Ok(more) => cases.extend(more),
                // Ignore the error for a policy: a policy that waits for a place need not fit the settings that this
                // place has now, so the operator does not try it.
                Err(_) if matches!(entry.content, Content::Policy(..)) => {}
                Err(Unfit { message, before, .. }) if !before.is_empty() => {
                    return Verdict::Unfit(self.waits_for_end(name, entry, &before, &message));
                }
                Err(Unfit { reason, message, .. }) => {
                    return Verdict::Unfit(NotAdmitted::refused(reason, message));
                }
            }
        }
        match self.tried(name, &entry.source, cases).await {
            None => Verdict::Open,
            Some(Ok(())) => Verdict::Fit(serving),
            Some(Err(misfit)) if !misfit.error.is_lasting() => {
                // Forget this trial, so that the next attempt starts a new trial.
                self.trials.forget(name);
                Verdict::Unfit(NotAdmitted::pending(misfit.error.reason(), misfit.error.to_string()))
            }
            Some(Err(Misfit { error, is_before: true, .. })) => {
                let rollouts = arranged.staging.revisions();
                Verdict::Unfit(self.waits_for_end(name, entry, &rollouts, &error.to_string()))
            }
            Some(Err(Misfit { error, cause: Origin::OperatorConfig, .. })) => {
                Verdict::Unfit(self.waits_for_config(name, entry, BAD_SETTINGS, &error.to_string()))
            }
            Some(Err(misfit)) => {
                let (reason, message) = misfit.told_of(&entry.content);
                Verdict::Unfit(NotAdmitted::refused(reason, message))
            }
        }
    }

    /// Lets a revision wait until the owner corrects the operator's own ConfigMap.
    fn waits_for_config(
        &mut self,
        name: &str,
        entry: &AdmittedRevision,
        reason: &'static str,
        message: &str,
    ) -> NotAdmitted {
        self.waiting.insert(name.to_owned(), entry.content.clone());
        NotAdmitted::pending(reason, format!("ConfigMap {OPERATOR_CONFIG}: {message}"))
    }

    /// Lets a revision wait for the end of rollouts. The revision fits the policies that are being rolled out. But it
    /// does not fit the predecessors, which still serve the objects that the rollouts have not moved yet.
    fn waits_for_end(
        &mut self,
        name: &str,
        entry: &AdmittedRevision,
        rollouts: &[Arc<str>],
        message: &str,
    ) -> NotAdmitted {
        self.waiting.insert(name.to_owned(), entry.content.clone());
        NotAdmitted::pending(ANOTHER_ROLLOUT, fits_after(rollouts, message))
    }

    /// Lets candidates serve if their effect is within the limits.
    async fn let_in_gated(
        &mut self,
        mut candidates: Vec<Candidate>,
        serving: &BTreeSet<String>,
    ) -> Result<Option<Result<(), NotAdmitted>>, StepError> {
        if let Some(waits) = self.waits_for_rollout(&candidates, serving) {
            self.withdraw(&mut candidates);
            return Ok(Some(Err(waits)));
        }
        let answer = self.gate(&candidates, serving).await;
        if matches!(answer, Ok(GateAnswer::Passed)) {
            return self.let_in(candidates, serving).await.map(Some);
        }
        self.withdraw(&mut candidates);
        answer.map(|answer| match answer {
            GateAnswer::Held(held) => Some(Err(held)),
            GateAnswer::Passed | GateAnswer::Open => None,
        })
    }

    /// Lets candidates serve, one after another. The caller proposed the candidates and found that they can serve.
    async fn let_in(
        &mut self,
        candidates: Vec<Candidate>,
        serving: &BTreeSet<String>,
    ) -> Result<Result<(), NotAdmitted>, StepError> {
        for (at, candidate) in candidates.iter().enumerate() {
            let done = self.let_one_in(candidate, serving).await;
            if matches!(done, Ok(Err(_))) {
                for Candidate { name, kept, .. } in &candidates[at..] {
                    self.revisions.put_back(name, kept.clone());
                }
            }
            if !matches!(done, Ok(Ok(()))) {
                return done;
            }
        }
        Ok(Ok(()))
    }

    async fn let_one_in(
        &mut self,
        candidate: &Candidate,
        serving: &BTreeSet<String>,
    ) -> Result<Result<(), NotAdmitted>, StepError> {
        let Candidate { name, entry, package, before, .. } = candidate;
        let waits = |this: &mut Self, reason, message: String| {
            this.waiting.insert(name.clone(), entry.content.clone());
            Ok(Err(NotAdmitted::pending(reason, message)))
        };
        if let Some(revision) = self.records.get(name).cloned()
            && let Err(Taken(config_map)) = self.store.keep(&revision, package).await?
        {
            let message = format!(
                "the operator cannot store this revision: ConfigMap {config_map} exists and does not belong to the \
                 revision: delete the ConfigMap"
            );
            return waits(self, "NameTaken", message);
        }
        let asked = self.asked(name);
        self.counted.insert(name.clone());
        // A revision that replaces a serving revision gets the place of that revision without a wait.
        let replaces = before.iter().any(|other| self.records.status(other).state == RevisionState::Active);
        let kept_out = if replaces { None } else { self.revisions.kept_out(entry, serving) };
        let (remarks, approval) = (entry.content.remarks().join("; "), self.approval(name));
        let rollout = self.rollout_of(candidate);
        // If another revision has the place, the rollout begins only when this revision gets the place.
        let conflict = || rollout.as_ref().and_then(|_| self.revisions.conflict_of(name, serving));
        let kept_out = kept_out.or_else(conflict);
        let rollout = rollout.filter(|_| kept_out.is_none());
        let (yields, stage) = (entry.predecessor.clone().filter(|_| rollout.is_some()), rollout.as_ref().map(moved_by));
        let transition = match (kept_out, &approval) {
            (None, _) if rollout.is_some() => {
                let by = approval.as_ref().map(|approval| format!("approved by {}", approval.by));
                let summary = rollout.as_ref().map(|rollout| rollout.summary.clone());
                let parts: Vec<String> = summary.into_iter().chain(by).collect();
                Transition::new(RevisionState::Active, ROLLING_OUT, parts.join("; "))
            }
            (Some(why), _) => Transition::new(RevisionState::Conflict, why.reason, why.message),
            (None, Some(approval)) => {
                let by = format!("approved by {}", approval.by);
                let message = if remarks.is_empty() { by } else { format!("{by}; {remarks}") };
                Transition::new(RevisionState::Active, "Approved", message)
            }
            (None, None) => Transition::new(RevisionState::Active, "Active", remarks),
        };
        let (preview, returned_from) = (self.previews.last(name).cloned(), self.way_back(candidate));
        let is_there = self.enter(name, transition, |status| {
            describe(status, entry);
            status.retried = asked;
            status.preview = preview.or(status.preview.take());
            (status.approved, status.limits_digest, status.returned_from) = (approval, None, returned_from);
            status.rollout = rollout;
        });
        if !is_there.await? {
            // Do not admit a revision without a PolicyRevision: if this revision replaced the serving revision, no
            // policy would serve.
            let message = "the revision's record was deleted during the check; the check starts again";
            return waits(self, "Interrupted", message.to_owned());
        }
        self.checking.remove(name);
        if let Some(entry) = self.revisions.entries.get_mut(name) {
            entry.stage = stage;
        }
        // Two revisions of a source must never serve together, so stop the earlier revisions now instead of in the next
        // round. During a rollout, the predecessor is not stopped, but yields: it still serves the objects that are not
        // moved.
        for other in before {
            let (other, by) = (other.clone(), name.clone());
            let action = match yields.as_ref() {
                Some(yields) if *yields == other => Action::Yield { name: other, by },
                _ => Action::Replace { name: other, by },
            };
            self.execute(action, &[]).await?;
        }
        self.wake_rollouts();
        Ok(Ok(()))
    }
}

/// Returns the message for settings or a policy that wait for the end of rollouts. The parameter `message` says what
/// does not fit before the rollouts end.
pub(super) fn fits_after(rollouts: &[Arc<str>], message: &str) -> String {
    format!(
        "waits for the end of the rollout of {}, because it does not fit the policies that serve until then: {message}",
        rollouts.join(" and ")
    )
}

/// Returns the entry of a checked package for the admitted revisions.
pub(super) fn entry_of(found: &Found, package: &Package, reach: Reach, content: Content) -> AdmittedRevision {
    AdmittedRevision {
        source: found.source.clone(),
        age: found.age.clone(),
        reach,
        pinned: package.file.scope.pinned,
        content,
        on_refusal: package.file.on_refusal,
        rollout: package.file.rollout.clone(),
        stage: None,
        since: None,
        predecessor: None,
    }
}

/// Writes the policy, version, kinds and other facts of a revision into its status.
fn describe(status: &mut PolicyRevisionStatus, entry: &AdmittedRevision) {
    match &entry.content {
        Content::Policy(policy, _) => {
            status.policy = Some(policy.id().name.clone());
            status.version = Some(policy.id().version.clone());
            status.script_engine = policy.script_engine().map(|engine| engine.to_string());
            status.answers_digest = policy.answers().map(|digest| digest.to_string());
        }
        Content::Settings(policy, _) | Content::Unloaded(policy, ..) | Content::Lost { policy, .. } => {
            status.policy = Some(policy.clone());
        }
    }
    status.kinds = entry.content.kinds();
    status.predecessor.clone_from(&entry.predecessor);
    status.since = entry.since.map(written);
    status.claimed = entry.age.claimed.map(|claimed| claimed.to_string());
}
