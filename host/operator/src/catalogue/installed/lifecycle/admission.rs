//! Turns a package into a checked revision that is ready to serve.

use std::{sync::Arc, time::Duration};

use kaos_crds::{PolicySource, RevisionState};
use kaos_policy::policy::Policy;
use tokio::time::Instant;

use super::{
    BACKOFF, Found, Held, LOOK_AGAIN, Lifecycle, StepError, Transition,
    activating::entry_of,
    candidate::Candidate,
    not_admitted::{NO_SUCH_POLICY, NotAdmitted},
    rebuilds::answers_of,
};
use crate::{
    catalogue::{
        Reach,
        installed::{
            Tools,
            background::Stand,
            is_default,
            questions::Missing,
            revision_set::{AdmittedRevision, Content},
            rights,
            sources::{MAX_PACKAGES, NoPackage},
        },
        reach,
    },
    package::Package,
    timestamps::passed,
};

impl Lifecycle {
    /// Checks a package and lets it serve. Returns whether to try the package again even if nothing changes.
    pub(super) async fn admit(
        &mut self,
        name: &str,
        found: &Found,
        held: &Held,
        asked: Option<String>,
        all: &[Found],
    ) -> Result<bool, StepError> {
        let package = match &held.package {
            Ok(package) => Arc::clone(package),
            Err(no_package) => {
                let state = match no_package {
                    NoPackage::OneTooMany => {
                        let message = format!(
                            "namespace {} has {MAX_PACKAGES} older policies, which is the maximum: delete one of these \
                             policies",
                            found.source.namespace
                        );
                        Transition::new(RevisionState::Pending, "TooManyPolicies", message)
                    }
                    NoPackage::Wrong(error) if error.is_incomplete() => {
                        Transition::new(RevisionState::Pending, "Incomplete", error.to_string())
                    }
                    NoPackage::Wrong(error) => {
                        Transition::new(RevisionState::Refused, "NotAPackage", error.to_string())
                    }
                };
                self.enter_or_owe(name, state, |status| status.retried = asked).await;
                return Ok(false);
            }
        };
        self.record_approval(name).await;
        let begins =
            package.component.is_some() && !self.waiting.contains_key(name) && self.defaults.own(name).is_none();
        if begins && !self.is_checked(name, found, &package, asked.as_ref()).await? {
            // The end of this check, or of a check for which this check waits, starts a new round.
            return Ok(false);
        }
        let stands = [self.questions.stand(name), self.trials.stand(name), self.previews.stand(name)];
        if stands.iter().any(|stand| matches!(stand, Stand::UnderWay)) {
            // The end of the question about rights, of the trial or of the preview starts a new round.
            return Ok(false);
        }
        if package.component.is_some() {
            // A package that only waits for rights also takes its namespace's turn of this round, because each attempt
            // sends questions to the API server.
            self.fairness.take(&found.source.namespace);
        }
        // If the API server does not answer, the next round continues the check.
        let Some(examined) = self.examine(name, found, &package).await? else { return Ok(false) };
        let admitted = match examined.and_then(|entry| self.unless_rebuild(name, entry)) {
            Ok(entry) => {
                let content = entry.content.clone();
                let activated = self.activate(Candidate::new(name, entry, Arc::clone(&package)), all).await;
                if !matches!(activated, Ok(None)) {
                    self.permitted.remove(name);
                }
                if activated.is_err() {
                    // Keep the checked content: passing the gate again would take time. But forget the effect, because
                    // the objects can change until the next attempt.
                    self.waiting.insert(name.to_owned(), content);
                    self.previews.forget(name);
                }
                // The end of the trial or of the preview starts a new round.
                let Some(activated) = activated? else { return Ok(false) };
                activated
            }
            Err(refused) => Err(refused),
        };
        let is_over = !matches!(&admitted, Err(NotAdmitted { again: true, .. }));
        if is_over {
            self.trials.forget(name);
        }
        let again = match admitted {
            Ok(()) => {
                self.waiting.remove(name);
                self.due.remove(name);
                false
            }
            Err(not_admitted) => {
                let NotAdmitted { transition, again } = self.or_waits(not_admitted, &package, found, all);
                let of = self.waiting.get(name).and_then(|content| content.policy()).map(|of| of.id().name.clone());
                self.remember_refusal(name, &transition, &package, of.as_deref(), all);
                let is_held = transition.to == RevisionState::Held;
                let answers = self.waiting.get(name).and_then(answers_of);
                let limits_digest = is_held.then(|| self.limits_digest(&package.file.rollout));
                let preview = self.previews.last(name).cloned();
                let of = of.or_else(|| package.file.name.clone().filter(|_| is_held));
                self.enter_or_owe(name, transition, |status| {
                    status.retried = asked;
                    status.policy = of.or(status.policy.take());
                    status.answers_digest = answers.or(status.answers_digest.take());
                    // Remove the effect from the status of a refused revision, except if a person approved this effect.
                    let shows = is_held || status.state == RevisionState::Pending || status.approved.is_some();
                    status.preview = preview.or(status.preview.take()).filter(|_| shows);
                    status.limits_digest = limits_digest;
                })
                .await;
                if is_held {
                    self.remember_hold(name, &package);
                }
                if again {
                    self.due.insert(name.to_owned(), Instant::now() + self.patience_with(name));
                } else {
                    self.due.remove(name);
                }
                // Keep the checked content of a held revision, so that an approval takes effect at once.
                if !again && !is_held {
                    self.waiting.remove(name);
                }
                again
            }
        };
        // Forget the effect, because the objects can change until a later attempt.
        self.previews.forget(name);
        // Remove this entry last: if an earlier write of this function fails, the next round continues the check.
        self.checking.remove(name);
        Ok(again)
    }

    /// Returns whether the check of a package has finished. If the check has not started, starts the check when it is
    /// the package's turn.
    async fn is_checked(
        &mut self,
        name: &str,
        found: &Found,
        package: &Arc<Package>,
        asked: Option<&String>,
    ) -> Result<bool, StepError> {
        let namespace = &found.source.namespace;
        match self.checks.stand(name) {
            Stand::Ended => return Ok(true),
            Stand::UnderWay => return Ok(false),
            Stand::Open if !self.checks.has_room_for(namespace) => return Ok(false),
            Stand::Open if self.waits_for_loading(&found.source) => return Ok(false),
            Stand::Open => {}
        }
        if !self.checking.contains(name) {
            let state = Transition::new(RevisionState::Checking, "Checking", "");
            self.enter(name, state, |status| {
                status.retried = asked.cloned();
                status.attempts = Some(status.attempts.unwrap_or_default() + 1);
            })
            .await?;
            self.checking.insert(name.to_owned());
        }
        // Take the turn only after the check has started: a check that could not start must not use up the turn of its
        // namespace.
        self.fairness.take(namespace);
        self.checks.begin(name, namespace, Arc::clone(package));
        Ok(false)
    }

    /// Returns the delay before the next attempt for a waiting revision. A revision that passed the gate often waits
    /// for an object that a user creates soon, such as a role. So the delay is short at first, and grows with the
    /// waiting time of the revision.
    fn patience_with(&self, name: &str) -> Duration {
        if !self.waiting.contains_key(name) {
            return LOOK_AGAIN;
        }
        passed(self.records.status(name).since.as_deref(), self.tools.clock.now()).clamp(BACKOFF.first, LOOK_AGAIN)
    }

    /// Runs all checks that do not depend on other serving revisions. Returns `None` while the operator asks the API
    /// server about rights.
    async fn examine(
        &mut self,
        name: &str,
        found: &Found,
        package: &Arc<Package>,
    ) -> Result<Option<Result<AdmittedRevision, NotAdmitted>>, StepError> {
        let reach = match self.reach(&found.source, package) {
            Ok(reach) => reach,
            Err(refused) => return Ok(Some(Err(refused))),
        };
        let content = match self.waiting.get(name) {
            // The package already passed the gate, and waited for a change outside the package.
            Some(content) => content.clone(),
            None => match self.content(name, &found.source, package).await {
                Ok(content) => content,
                Err(refused) => return Ok(Some(Err(refused))),
            },
        };
        if let Content::Policy(policy, _) = &content {
            // Keep the checked content: passing the gate again would take time.
            self.waiting.insert(name.to_owned(), content.clone());
            let missing = if self.permitted.contains(name) {
                Vec::new()
            } else {
                let Some(missing) = self.missing(name, policy, found).await else { return Ok(None) };
                missing?
            };
            if !missing.is_empty() {
                let duties = &self.tools.duties;
                let remedy = rights::remedy(duties) + &rights::unbound(duties, policy);
                let message = format!("the operator is not allowed to {}: {remedy}", missing.join("; "));
                let transition = Transition::new(RevisionState::NotPermitted, "NotPermitted", message);
                return Ok(Some(Err(NotAdmitted { transition, again: true })));
            }
        }
        self.permitted.insert(name.to_owned());
        let rollout = self.defaults.rollout(&found.source, package);
        Ok(Some(Ok(AdmittedRevision { rollout, ..entry_of(found, package, reach, content) })))
    }

    /// Returns the rights that the policy needs and the operator lacks. The first call asks the API server. Returns
    /// `None` until the API server has answered.
    async fn missing(&mut self, name: &str, policy: &Policy, found: &Found) -> Option<Missing> {
        if let Some(missing) = self.questions.take(name).await {
            return Some(missing);
        }
        let own: Vec<_> = self.revisions.own.iter().map(|offer| &*offer.member.policy).collect();
        let Tools { duties, watch, .. } = &self.tools;
        let wanted = rights::wanted(policy, &own, duties, &watch.barred());
        if wanted.is_empty() {
            return Some(Ok(Vec::new()));
        }
        self.questions.begin(name, &found.source.namespace, wanted);
        None
    }

    /// Returns the scope of a package. Refuses the package if it contains grants that the owner does not allow.
    pub(super) fn reach(&self, source: &PolicySource, package: &Package) -> Result<Reach, NotAdmitted> {
        if !self.defaults.has_grants(source, &package.file.grants) {
            self.tools.grantable.covers_grants(&package.file.grants)?;
        }
        if is_default(source) {
            return Ok(Reach::Process);
        }
        Ok(reach(&package.file, &package.namespace, &self.tools.duties.operator_namespace)?)
    }

    /// Returns the checked content of a package. Takes the result of the background check if there is one, and
    /// otherwise checks the package now.
    pub(super) async fn content(
        &mut self,
        name: &str,
        source: &PolicySource,
        package: &Arc<Package>,
    ) -> Result<Content, NotAdmitted> {
        if let Some(own) = self.defaults.own(name) {
            return Ok(own);
        }
        if package.component.is_some() {
            let checked = match self.checks.take(name).await {
                Some((checked, time)) => {
                    self.fairness.took(&package.namespace, time);
                    checked
                }
                None => self.checks.now(&self.defaults.granted(source, package), &package.namespace).await,
            };
            return match checked {
                Ok(policy) => {
                    let is_owners = package.namespace == self.tools.duties.operator_namespace;
                    let own = self.revisions.own.iter().flat_map(|offer| &offer.member.policy.descriptor().claims);
                    let claims = &policy.descriptor().claims;
                    if !self.defaults.has_types(source, claims) {
                        self.tools.grantable.covers_policy(claims, is_owners, own)?;
                    }
                    self.make_room(name, &package.namespace, &policy)?;
                    Ok(Content::Policy(policy, package.file.settings.clone()))
                }
                Err(error) if error.is_lasting() => Err(NotAdmitted::refused(error.reason(), error.to_string())),
                Err(error) => Err(NotAdmitted::pending(error.reason(), error.to_string())),
            };
        }
        let policy = package.file.name.clone().unwrap_or_default();
        if !self.revisions.knows_policy(&policy) {
            let message = format!(
                "policy.yaml: `name`: the package changes settings of policy `{policy}`, which does \
                not exist"
            );
            return Err(NotAdmitted::refused(NO_SUCH_POLICY, message));
        }
        Ok(Content::Settings(policy, package.file.settings.clone()))
    }
}
