//! Holds a checked candidate whose effect exceeds a limit. Without limits, a candidate serves at once, and the operator
//! computes no effect.

use std::collections::BTreeSet;

use kaos_crds::{PolicyPreview, RevisionState};
use kaos_policy::{
    digest::Digest,
    rollout::{Rollout, RolloutMode},
};

use super::{Lifecycle, StepError, Transition, candidate::Candidate, not_admitted::NotAdmitted};
use crate::catalogue::{
    Arranged, Conflict, Reach, Snapshot,
    installed::{
        previews::{Basis, Proposal},
        revision_set::AdmittedRevision,
        rollout_gate::{EffectLimits, ExceededLimit},
    },
};

/// The status reason of a revision while the operator computes its effect.
const PREVIEWING: &str = "Previewing";

/// The maximum number of previews of a revision. The operator repeats a preview if the policies that the candidates
/// replace changed during the preview. After this number, the operator holds the revision. Otherwise another package
/// that changes all the time would delay the revision for ever.
const PREVIEWS: usize = 5;

/// The answer to the question whether candidates can start to serve.
pub(super) enum GateAnswer {
    Passed,
    /// The operator computes the effect. The end of the computation starts a new round.
    Open,
    Held(NotAdmitted),
}

impl Lifecycle {
    /// Returns whether the effect of candidates is within the limits. The caller proposed the candidates, and found
    /// that they can serve together with the other revisions in `serving`. The answer is about the last candidate.
    pub(super) async fn gate(
        &mut self,
        candidates: &[Candidate],
        serving: &BTreeSet<String>,
    ) -> Result<GateAnswer, StepError> {
        let mut limited: Vec<&Candidate> = candidates.iter().filter(|candidate| self.is_limited(candidate)).collect();
        let Some(Candidate { name, entry, before, .. }) = candidates.last() else { return Ok(GateAnswer::Passed) };
        if limited.is_empty() {
            return Ok(GateAnswer::Passed);
        }
        let arranged = match self.arranged_with(name, serving) {
            Ok(arranged) => arranged,
            Err(waits) => return Ok(GateAnswer::Held(waits)),
        };
        // Hold the candidate without a preview: while another package has the place, the candidate changes no object,
        // so its effect would be empty.
        if let Some(taken) = limited.iter().find_map(|limited| self.taken_from(limited, serving, &arranged)) {
            let message =
                format!("{}; after that, the operator compares the package's effect with the limits", taken.message);
            let transition = Transition::new(RevisionState::Held, taken.reason, message);
            return Ok(GateAnswer::Held(NotAdmitted { transition, again: false }));
        }
        let Some(current) = self.tools.catalogue.load() else {
            // On a fresh cluster, no policy answers yet, and the watch does not follow any objects. Keep the checked
            // content, so that the next attempt comes soon.
            self.waiting.insert(name.clone(), entry.content.clone());
            let waits = "the operator computes the effect of the package as soon as other policies answer";
            return Ok(GateAnswer::Held(NotAdmitted::pending(PREVIEWING, waits)));
        };
        let after = self.tools.catalogue.proposed(arranged);
        let mut basis = Basis {
            replaced: Snapshot::replaced(&current, &after),
            candidates: candidates.iter().map(|candidate| candidate.name.clone()).collect(),
            frozen: Vec::new(),
        };
        // An approval counts only for the same basis: if the candidates now replace other policies, the person did not
        // see this effect.
        let digest = basis.digest();
        limited.retain(|candidate| !self.is_approved_on(&candidate.name, &digest));
        if limited.is_empty() {
            return Ok(GateAnswer::Passed);
        }
        let limits = self.limits(limited.iter().map(|candidate| &candidate.entry.rollout));
        basis.frozen = limits.frozen();
        self.previews.take_up(name).await;
        if let Some(effect) = self.previews.effect(name, &basis) {
            let exceeded = limits.exceeded(effect);
            let Some(ExceededLimit { reason, .. }) = exceeded.first() else { return Ok(GateAnswer::Passed) };
            let names: Vec<&str> = limited.iter().map(|candidate| candidate.name.as_str()).collect();
            let message = format!("{}: {}", told(&exceeded), remedy(&names));
            let preview = effect.preview.clone();
            for other in limited.iter().filter(|other| other.name != *name) {
                self.hold_beside(other, candidates, Transition::new(RevisionState::Held, reason, &message), &preview)
                    .await;
            }
            let transition = Transition::new(RevisionState::Held, reason, message);
            return Ok(GateAnswer::Held(NotAdmitted { transition, again: false }));
        }
        if self.previews.begun(name) >= PREVIEWS {
            let message = format!(
                "the operator started to compute the effect {PREVIEWS} times, but each time another package changed \
                 the policies that this package replaces: {}",
                remedy(&[name])
            );
            let transition = Transition::new(RevisionState::Held, "EffectUnknown", message);
            return Ok(GateAnswer::Held(NotAdmitted { transition, again: false }));
        }
        let (policy, is_approved) = (entry.content.policy_name().to_owned(), self.is_approved_on(name, &digest));
        let proposal = Proposal {
            before: current,
            after,
            frozen: basis.frozen.clone(),
            replaces: before.first().cloned(),
            together: others(&basis.candidates, name),
            basis: digest,
        };
        self.enter_preview(name, &policy, is_approved).await?;
        self.previews.begin(name, basis, proposal);
        Ok(GateAnswer::Open)
    }

    /// Records that the operator computes the effect of a revision. Counts the attempts, so that a preview that crashes
    /// the operator each time does not repeat for ever. If this process also checked the package, the check and the
    /// preview count as one attempt.
    async fn enter_preview(&mut self, name: &str, policy: &str, is_approved: bool) -> Result<(), StepError> {
        let is_new = !self.checking.contains(name);
        let message = "the operator computes the effect of the package on the objects of the cluster";
        let previewing = Transition::new(RevisionState::Previewing, PREVIEWING, message);
        self.enter(name, previewing, |status| {
            status.attempts = Some(status.attempts.unwrap_or_default() + i64::from(is_new));
            status.policy = Some(policy.to_owned());
            // Remove an approval if the candidates replaced other policies when the person approved, because the effect
            // was another one.
            status.approved = status.approved.take().filter(|_| is_approved);
        })
        .await?;
        self.checking.insert(name.to_owned());
        Ok(())
    }

    /// Holds a candidate that would start to serve together with the last candidate.
    async fn hold_beside(&mut self, other: &Candidate, all: &[Candidate], held: Transition, preview: &PolicyPreview) {
        let Candidate { name, entry, .. } = other;
        let names: Vec<String> = all.iter().map(|candidate| candidate.name.clone()).collect();
        let mut preview = preview.clone();
        preview.inputs.together = others(&names, name);
        let (limits_digest, policy) = (self.limits_digest(&entry.rollout), entry.content.policy_name().to_owned());
        self.enter_or_owe(name, held, |status| {
            (status.preview, status.limits_digest, status.policy) = (Some(preview), Some(limits_digest), Some(policy));
        })
        .await;
        self.remember_hold(name, &other.package);
    }

    /// Returns whether a candidate cannot serve before its effect is known. A way back, which is a return to the
    /// previous revision, needs no effect, so that it never waits for a person.
    fn is_limited(&self, candidate: &Candidate) -> bool {
        let Candidate { name, entry, .. } = candidate;
        let serves = self.records.status(name).state == RevisionState::Active;
        !serves && self.needs_effect(entry) && self.way_back(candidate).is_none()
    }

    /// Returns whether a person approved a revision, and saw its effect for the same candidates and the same replaced
    /// policies (`basis`).
    fn is_approved_on(&self, name: &str, basis: &str) -> bool {
        let seen = self.records.status(name).preview.and_then(|preview| preview.inputs.basis);
        self.approval(name).is_some() && seen.is_some_and(|seen| seen == basis)
    }

    /// Returns whether a revision cannot serve before its effect is known, and no person approved the revision.
    pub(super) fn is_gated(&self, name: &str, entry: &AdmittedRevision) -> bool {
        self.needs_effect(entry) && self.approval(name).is_none()
    }

    /// Returns whether the operator needs the effect of a revision. The operator needs the effect if limits apply, or
    /// if the effect decides whether the revision serves in steps. The operator also shows the effect of each default
    /// policy that does not start to serve at once.
    fn needs_effect(&self, entry: &AdmittedRevision) -> bool {
        let mode = entry.rollout.mode(&self.tools.rollout_defaults);
        let is_shown = entry.reach == Reach::Process && mode != RolloutMode::Now;
        !self.limits([&entry.rollout]).are_none() || mode == RolloutMode::Auto || is_shown
    }

    /// If a candidate is the way back, returns the serving revision that had replaced the candidate. Returns `None` if
    /// that revision came itself as a way back from the candidate: otherwise two contents could alternate without ever
    /// meeting the limits.
    pub(super) fn way_back(&self, Candidate { name, before, .. }: &Candidate) -> Option<String> {
        let replaced_it = |serving: &&String| {
            let status = self.records.status(serving);
            status.predecessor.as_ref() == Some(name) && status.returned_from.as_ref() != Some(name)
        };
        before.iter().find(replaced_it).cloned()
    }

    /// Returns the limits for packages.
    fn limits<'a>(&self, rollouts: impl IntoIterator<Item = &'a Rollout>) -> EffectLimits {
        EffectLimits::new(&self.tools.rollout_gate, rollouts)
    }

    /// Returns the digest of the limits for a package, for the status of a held revision.
    pub(super) fn limits_digest(&self, rollout: &Rollout) -> String {
        Digest::of(self.limits([rollout]).text().as_bytes()).to_string()
    }

    /// Returns the policy table that includes a candidate. If the candidate cannot serve together with the other
    /// revisions, returns why the candidate waits.
    fn arranged_with(&self, name: &str, serving: &BTreeSet<String>) -> Result<Arranged, NotAdmitted> {
        let kept_out = self.kept_out(serving);
        let answering = serving.iter().filter(|name| !kept_out.contains_key(name.as_str())).cloned().collect();
        let shared = self.shared(self.held_config().as_ref());
        let arranged = self.revisions.arrange_with(Some(name), &answering, &shared);
        arranged.map_err(|unfit| NotAdmitted::pending(unfit.reason, unfit.message))
    }

    /// Returns the conflict with the package that has a candidate's place, or `None` if the candidate gets the place.
    fn taken_from(
        &self,
        Candidate { name, entry, before, .. }: &Candidate,
        serving: &BTreeSet<String>,
        arranged: &Arranged,
    ) -> Option<Conflict> {
        let replaces = before.iter().any(|other| self.records.status(other).state == RevisionState::Active);
        let lost = || if replaces { None } else { self.revisions.kept_out(entry, serving) };
        arranged.conflicts.get(name.as_str()).cloned().or_else(lost)
    }
}

fn others(candidates: &[String], name: &str) -> Vec<String> {
    candidates.iter().filter(|other| *other != name).cloned().collect()
}

fn told(exceeded: &[ExceededLimit]) -> String {
    exceeded.iter().map(|limit| limit.message.as_str()).collect::<Vec<_>>().join("; ")
}

/// Returns the commands that let the revisions `names` serve. Each of the revisions needs an approval.
fn remedy(names: &[&str]) -> String {
    let last = names.last().copied().unwrap_or_default();
    let approve: Vec<String> = names.iter().map(|name| format!("`kaos-operator policy approve {name}`")).collect();
    format!("see `kaos-operator policy preview {last}`; to let the package serve, run {}", approve.join(" and "))
}
