//! Holds a checked candidate whose effect exceeds a limit. Without limits, a candidate serves at once, and the operator
//! computes no effect.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kaos_crds::{PolicyApproval, RevisionState};
use kaos_policy::contract::ResourceType;

use super::{Lifecycle, StepError, Transition, candidate::Candidate, not_admitted::NotAdmitted};
use crate::{
    catalogue::{
        Snapshot,
        installed::{
            previews::{Basis, Proposal},
            records::APPROVED_BY,
            rollout_gate::{EffectLimits, ExceededLimit},
        },
    },
    package::Package,
    timestamps::written,
};

/// The status reason of a revision while the operator computes its effect.
const PREVIEWING: &str = "Previewing";

/// The answer to the question whether candidates can start to serve.
pub(super) enum GateAnswer {
    Passed,
    /// The operator computes the effect. The end of the computation starts a new round.
    Open,
    Held(NotAdmitted),
}

impl Lifecycle {
    /// Returns whether the effect of candidates is within the limits. The caller proposed the candidates, and found that
    /// they can serve together with the other revisions in `serving`. The answer is about the last candidate.
    pub(super) async fn gate(
        &mut self,
        candidates: &[Candidate],
        serving: &BTreeSet<String>,
    ) -> Result<GateAnswer, StepError> {
        let limits = self.limits(candidates.iter().map(|candidate| &*candidate.package));
        let Some(Candidate { name, entry, before, .. }) = candidates.last() else { return Ok(GateAnswer::Passed) };
        let is_exempt = candidates.iter().all(|candidate| self.is_exempt(candidate));
        if limits.are_none() || is_exempt || self.approval(name).is_some() {
            return Ok(GateAnswer::Passed);
        }
        let Some((current, after)) = self.proposed(name, serving) else {
            // On a fresh cluster, no policy answers yet, and the watch does not follow any objects. Keep the checked
            // content, so that the next attempt comes soon.
            self.waiting.insert(name.clone(), entry.content.clone());
            let waits = "the operator computes the effect of the package as soon as other policies answer";
            return Ok(GateAnswer::Held(NotAdmitted::pending(PREVIEWING, waits)));
        };
        let basis = Basis {
            since: since(&current, &after),
            candidates: candidates.iter().map(|candidate| candidate.name.clone()).collect(),
            frozen: limits.frozen(),
        };
        self.previews.take_up(name).await;
        if let Some(effect) = self.previews.effect(name, &basis) {
            let exceeded = limits.exceeded(effect);
            return Ok(match exceeded.first() {
                None => GateAnswer::Passed,
                Some(ExceededLimit { reason, .. }) => {
                    let message = format!("{}: {}", told(&exceeded), remedy(name));
                    let transition = Transition::new(RevisionState::Held, reason, message);
                    GateAnswer::Held(NotAdmitted { transition, again: false })
                }
            });
        }
        let (name, replaces) = (name.clone(), before.first().cloned());
        let proposal = Proposal { before: current, after, frozen: basis.frozen.clone(), replaces };
        let message = "the operator computes the effect of the package on the objects of the cluster";
        self.enter(&name, Transition::new(RevisionState::Previewing, PREVIEWING, message), |_| {}).await?;
        self.previews.begin(&name, basis, proposal);
        Ok(GateAnswer::Open)
    }

    /// Returns whether a candidate needs no gate: the candidate already serves, or the revision that serves now replaced
    /// the candidate. A return to the previous revision must not need a person.
    fn is_exempt(&self, Candidate { name, before, .. }: &Candidate) -> bool {
        let replaced_it = |serving: &String| self.records.status(serving).predecessor.as_ref() == Some(name);
        self.records.status(name).state.is_let_in() || before.iter().any(replaced_it)
    }

    /// Returns the limits for packages.
    fn limits<'a>(&self, packages: impl IntoIterator<Item = &'a Package>) -> EffectLimits {
        EffectLimits::new(&self.tools.rollout_gate, packages.into_iter().map(|package| &package.file.rollout))
    }

    /// Returns the limits for a package as text, for the status of a held revision.
    pub(super) fn held_by(&self, package: &Package) -> String {
        self.limits([package]).text()
    }

    /// Returns the current policies, and the policies with a candidate. Returns `None` if no policies answer yet.
    fn proposed(&self, name: &str, serving: &BTreeSet<String>) -> Option<(Arc<Snapshot>, Arc<Snapshot>)> {
        let current = self.tools.catalogue.load()?;
        let kept_out = self.kept_out(serving);
        let answering = serving.iter().filter(|name| !kept_out.contains_key(name.as_str())).cloned().collect();
        let shared = self.shared(self.held_config().as_ref());
        let arranged = self.revisions.arrange_with(Some(name), &answering, &shared).ok()?;
        Some((current, self.tools.catalogue.proposed(arranged.answers)))
    }

    /// Returns the approval of a revision by a person, or `None` without an approval.
    pub(super) fn approval(&self, name: &str) -> Option<PolicyApproval> {
        let known = self.records.status(name).approved;
        let annotations = self.records.get(name)?.metadata.annotations.as_ref();
        let by = annotations.and_then(|all| all.get(APPROVED_BY)).map(|by| by.trim()).filter(|by| !by.is_empty());
        match (known, by) {
            (Some(known), by) if by.is_none_or(|by| by == known.by) => Some(known),
            (_, Some(by)) => Some(PolicyApproval { by: by.to_owned(), at: Some(written(self.tools.clock.now())) }),
            (_, None) => None,
        }
    }

    /// Returns whether the operator must look at a held revision again: a person approved the revision, or the limits
    /// changed.
    pub(super) fn is_released(&self, name: &str, package: &Package) -> bool {
        self.approval(name).is_some() || self.records.status(name).held_by != Some(self.held_by(package))
    }
}

/// Returns, for each kind whose policies differ, the swap that set the current policies.
fn since(current: &Snapshot, after: &Snapshot) -> BTreeMap<ResourceType, u64> {
    let kinds = current.kinds().chain(after.kinds()).map(|(of, _)| of);
    let differing = kinds.filter(|of| match (current.of(of), after.of(of)) {
        (Some(now), Some(then)) => !then.is_same(now),
        _ => true,
    });
    differing.map(|of| (of.clone(), current.of(of).map_or(0, |now| now.since))).collect()
}

fn told(exceeded: &[ExceededLimit]) -> String {
    exceeded.iter().map(|limit| limit.message.as_str()).collect::<Vec<_>>().join("; ")
}

fn remedy(name: &str) -> String {
    format!(
        "see `kaos-operator policy preview {name}`; to let the package serve, run `kaos-operator policy approve {name}`"
    )
}
