//! Resolves a layer's needs in rounds. In each round, this module checks the new needs, looks up their targets, and
//! gives the found objects to the policy.

use std::collections::BTreeMap;

use super::{load::Load, stripped};
use crate::{
    code::Sandbox,
    contract::{Answer, Claim, Cluster, Followed, Found, Need, Refusal, Subject, Target},
    failure::Failure,
    guard,
    limits::Limits,
    lookup::{Lookup, Sighting},
    manifest::Grants,
};

/// The inputs that decide which objects one layer can see: the claim, the grants, the limits and the lookup in the
/// cluster.
pub(super) struct View<'a> {
    pub(super) claim: &'a Claim,
    pub(super) grants: &'a Grants,
    pub(super) limits: &'a Limits,
    pub(super) cluster: &'a Cluster,
    pub(super) namespace: &'a str,
    pub(super) lookup: &'a dyn Lookup,
}

/// The needs of one layer and the objects found for them, both sorted by id.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    pub(crate) needs: Vec<Need>,
    pub(crate) found: Vec<Found>,
}

impl View<'_> {
    /// Begins a pass, and asks the policy for needs until the policy names no new need. Adds the answers to the
    /// subject's `found`. Returns a refusal if the found objects exceed the limits of [`Load`].
    ///
    /// Fills `asked` even if the policy fails, so that the operator can watch the needed objects.
    pub(super) fn resolve(
        &self,
        sandbox: &mut dyn Sandbox,
        subject: &mut Subject,
        asked: &mut Asked,
    ) -> Result<Result<(), Refusal>, Failure> {
        let (mut known, mut load) = (BTreeMap::<String, Need>::new(), Load::default());
        let mut news = Vec::new();
        sandbox.begin(subject)?;
        for _ in 0..Limits::ROUNDS {
            let mut needs = sandbox.needs(&news)?;
            for need in &mut needs {
                need.target.fill_namespace(self.namespace);
            }
            let breaches = guard::needs(&needs, &known, self.claim, self.limits);
            if !breaches.is_empty() {
                return Err(Failure::Guard(breaches));
            }
            needs.retain(|need| !known.contains_key(&need.id));
            if needs.is_empty() {
                return Ok(Ok(()));
            }
            // Look up only new needs, and keep the answers of earlier rounds.
            news = needs.iter().map(|need| self.found(need, &mut load)).collect();
            subject.add(&news);
            asked.needs.extend(needs.iter().cloned());
            asked.needs.sort_by(|one, other| one.id.cmp(&other.id));
            known.extend(needs.into_iter().map(|need| (need.id.clone(), need)));
            if let Some(refusal) = load.refusal() {
                return Ok(Err(refusal));
            }
        }
        Err(Failure::TooManyRounds { limit: Limits::ROUNDS })
    }

    /// Answers one need. `load` limits the size of the answer.
    pub(super) fn found(&self, need: &Need, load: &mut Load) -> Found {
        Found { id: need.id.clone(), answer: self.answer(&need.followed(), load) }
    }

    /// Returns whether the policy is allowed to see a target. The operator watches only the targets that the policy may
    /// see.
    pub(super) fn may_see(&self, target: &Target) -> bool {
        self.permit(target).is_ok()
    }

    fn permit(&self, target: &Target) -> Result<(), String> {
        let cluster_scoped = self.lookup.is_cluster_scoped(&target.of());
        guard::may_read(target, cluster_scoped, self.namespace, self.grants, self.cluster)
    }

    fn answer(&self, Followed { target, fields }: &Followed, load: &mut Load) -> Answer {
        let of = target.of();
        if let Err(reason) = self.permit(target) {
            return Answer::Forbidden(reason);
        }
        // If the load is full, the pass ends in a refusal, so skip further lookups. Look up Secrets anyway, because
        // their facts are small.
        if load.is_full() && !of.is_secret() {
            return Answer::Objects(Vec::new());
        }
        match self.lookup.look_up_fields(target, fields, load.room()) {
            Sighting::Objects(_) if of.is_secret() => {
                Answer::Forbidden("policies never see the content of Secrets".to_owned())
            }
            Sighting::Objects(objects) => {
                let mut shown = Vec::new();
                for object in &objects {
                    if load.is_full() {
                        break;
                    }
                    shown.push(load.object(&stripped(object, false)));
                }
                load.is_read(target);
                Answer::Objects(shown)
            }
            Sighting::Secret(facts) => Answer::Secret(load.secret(target, facts)),
            Sighting::Unserved => Answer::Unserved,
            Sighting::Forbidden(reason) => Answer::Forbidden(reason),
        }
    }
}
