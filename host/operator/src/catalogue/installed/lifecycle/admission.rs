//! Turns a package into a serving revision.

use std::{sync::Arc, time::Duration};

use kaos_crds::{PolicyRevisionStatus, RevisionState};
use kaos_policy::{policy::Policy, settings::Layer};
use tokio::time::Instant;

use super::{Found, Held, LOOK_AGAIN, Lifecycle, PATIENCE, StepError, Transition, plan::Action};
use crate::{
    catalogue::{
        OPERATOR_CONFIG, Overreach, Reach,
        installed::{
            Tools,
            background::Stand,
            questions::Missing,
            revision_set::{Content, Entry, Unfit},
            rights,
            sources::{MOST, NoPackage},
            store::Taken,
        },
        reach,
    },
    package::Package,
    timestamps::{passed, written},
};

/// The reason for refusing settings whose policy does not exist yet.
pub(super) const NO_SUCH_POLICY: &str = "NoSuchPolicy";

/// Why a package is not admitted.
pub(super) struct NotAdmitted {
    pub(super) transition: Transition,
    /// Whether a later attempt may succeed although the package is the same.
    pub(super) again: bool,
}

impl NotAdmitted {
    pub(super) fn refused(reason: &'static str, message: impl Into<String>) -> Self {
        Self { transition: Transition::new(RevisionState::Refused, reason, message), again: false }
    }
}

impl From<Overreach> for NotAdmitted {
    fn from(Overreach { reason, message }: Overreach) -> Self {
        Self::refused(reason, message)
    }
}

impl Lifecycle {
    /// Checks a package and lets it serve. Returns whether to look at it again although nothing changes.
    pub(super) async fn admit(
        &mut self,
        name: &str,
        found: &Found,
        held: &Held,
        asked: Option<String>,
    ) -> Result<bool, StepError> {
        let package = match &held.package {
            Ok(package) => Arc::clone(package),
            Err(no_package) => {
                let state = match no_package {
                    NoPackage::OneTooMany => {
                        let message = format!(
                            "namespace {} has {MOST} older policies, which is the maximum: delete one",
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
        let begins = package.component.is_some() && !self.waiting.contains_key(name);
        if begins && !self.is_checked(name, found, &package, asked.as_ref()).await? {
            // The end of this check, or of the one before it, starts a new round.
            return Ok(false);
        }
        let stands = [self.questions.stand(name), self.trials.stand(name)];
        if stands.iter().any(|stand| matches!(stand, Stand::UnderWay)) {
            // The end starts a new round.
            return Ok(false);
        }
        if package.component.is_some() {
            // This counts also if the package only waits for rights: the operator asks the API server about each of
            // them.
            self.fairness.take(&found.source.namespace);
        }
        // Without an answer of the API server, the check stays open for the next round.
        let Some(examined) = self.examine(name, found, &package).await? else { return Ok(false) };
        let admitted = match examined {
            Ok(entry) => {
                let content = entry.content.clone();
                let activated = self.activate(name, found, &package, entry).await;
                if activated.is_err() {
                    // Keep the checked content: passing the gate again would take time.
                    self.waiting.insert(name.to_owned(), content);
                }
                // The end of the trial of the settings starts a new round.
                let Some(activated) = activated? else { return Ok(false) };
                activated
            }
            Err(refused) => Err(refused),
        };
        if !matches!(&admitted, Err(NotAdmitted { again: true, .. })) {
            self.trials.forget(name);
        }
        let again = match admitted {
            Ok(()) => {
                self.waiting.remove(name);
                self.due.remove(name);
                false
            }
            Err(NotAdmitted { transition, again }) => {
                self.enter_or_owe(name, transition, |status| status.retried = asked).await;
                if again {
                    self.due.insert(name.to_owned(), Instant::now() + self.patience_with(name));
                } else {
                    self.waiting.remove(name);
                }
                again
            }
        };
        // Remove this last: if a write failed above, the check stays open too.
        self.checking.remove(name);
        Ok(again)
    }

    /// Returns whether a package was checked. If not, starts the check when it is its turn.
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
        // A check that could not start takes no turn.
        self.fairness.take(namespace);
        self.checks.begin(name, namespace, Arc::clone(package));
        Ok(false)
    }

    /// Returns the delay before the next attempt for a waiting revision. A revision that passed the gate often waits
    /// for an object that will be created soon, such as a role. So the delay is short at first, and grows with the time
    /// that the revision has waited.
    fn patience_with(&self, name: &str) -> Duration {
        if !self.waiting.contains_key(name) {
            return LOOK_AGAIN;
        }
        passed(self.records.status(name).since.as_deref(), self.tools.clock.now()).clamp(PATIENCE.0, LOOK_AGAIN)
    }

    /// Makes all checks that do not depend on other serving revisions. Returns `None` while the API server is asked
    /// about rights.
    async fn examine(
        &mut self,
        name: &str,
        found: &Found,
        package: &Package,
    ) -> Result<Option<Result<Entry, NotAdmitted>>, StepError> {
        let reach = match self.reach(package) {
            Ok(reach) => reach,
            Err(refused) => return Ok(Some(Err(refused))),
        };
        let content = match self.waiting.get(name) {
            // The package passed the gate and waited for another reason.
            Some(content) => content.clone(),
            None => match self.content(name, package).await {
                Ok(content) => content,
                Err(refused) => return Ok(Some(Err(refused))),
            },
        };
        if let Content::Policy(policy, _) = &content {
            // Keep the checked content: passing the gate again would take time.
            self.waiting.insert(name.to_owned(), content.clone());
            let Some(missing) = self.missing(name, policy, found).await else { return Ok(None) };
            let missing = missing?;
            if !missing.is_empty() {
                let duties = &self.tools.duties;
                let remedy = rights::remedy(duties) + &rights::unbound(duties, policy);
                let message = format!("the operator may not {}: {remedy}", missing.join("; "));
                let transition = Transition::new(RevisionState::NotPermitted, "NotPermitted", message);
                return Ok(Some(Err(NotAdmitted { transition, again: true })));
            }
        }
        Ok(Some(Ok(Entry {
            source: found.source.clone(),
            age: found.age.clone(),
            reach,
            pinned: package.file.scope.pinned,
            content,
            on_refusal: package.file.on_refusal,
            since: None,
            predecessor: None,
        })))
    }

    /// Returns the rights that the policy lacks. Returns `None` while the API server is asked, which starts here.
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

    /// Returns whether the reason for refusing a package is gone.
    pub(super) fn is_overtaken(&self, held: &Held, status: &PolicyRevisionStatus) -> bool {
        let named = held.package.as_ref().ok().and_then(|package| package.file.name.as_deref());
        status.reason.as_deref() == Some(NO_SUCH_POLICY) && named.is_some_and(|name| self.revisions.knows_policy(name))
    }

    /// Returns the scope of a package. Refuses grants that the owner does not allow.
    pub(super) fn reach(&self, package: &Package) -> Result<Reach, NotAdmitted> {
        self.tools.grantable.covers_grants(&package.file.grants)?;
        Ok(reach(&package.file, &package.namespace, &self.tools.duties.operator_namespace)?)
    }

    /// Returns the checked content of a package. Checks it now, unless a background check has finished.
    pub(super) async fn content(&mut self, name: &str, package: &Package) -> Result<Content, NotAdmitted> {
        if package.component.is_some() {
            let checked = match self.checks.take(name).await {
                Some((checked, time)) => {
                    self.fairness.took(&package.namespace, time);
                    checked
                }
                None => self.checks.now(package, &package.namespace).await,
            };
            return match checked {
                Ok(policy) => {
                    let claims = &policy.descriptor().claims;
                    self.tools.grantable.covers_claims(claims)?;
                    if package.namespace != self.tools.duties.operator_namespace {
                        let own = self.revisions.own.iter().flat_map(|offer| &offer.member.policy.descriptor().claims);
                        self.tools.grantable.covers_reads_of_namespace(claims, own)?;
                    }
                    Ok(Content::Policy(policy, package.file.settings.clone()))
                }
                Err(error) if error.is_lasting() => Err(NotAdmitted::refused(error.reason(), error.to_string())),
                Err(error) => {
                    let transition = Transition::new(RevisionState::Pending, error.reason(), error.to_string());
                    Err(NotAdmitted { transition, again: true })
                }
            };
        }
        let policy = package.file.name.clone().unwrap_or_default();
        if !self.revisions.knows_policy(&policy) {
            let message = format!("policy.yaml: `name`: there is no policy `{policy}` whose settings could change");
            return Err(NotAdmitted::refused(NO_SUCH_POLICY, message));
        }
        Ok(Content::Settings(policy, package.file.settings.clone()))
    }

    /// Lets a revision serve if all serving revisions then fit together. The earlier revision of the same source stops
    /// serving. Returns `None` while the settings of the package are tried.
    async fn activate(
        &mut self,
        name: &str,
        found: &Found,
        package: &Package,
        mut entry: Entry,
    ) -> Result<Option<Result<(), NotAdmitted>>, StepError> {
        let serving = self.facts().serving();
        let before: Vec<String> = self.facts().others_of(name, &found.source).cloned().collect();
        entry.predecessor = before.first().cloned().or_else(|| self.served_before(name, &entry));
        entry.since = Some(self.tools.clock.now());
        let kept = self.revisions.entries.insert(name.to_owned(), entry.clone());
        let mut trial = serving;
        trial.retain(|other| !before.contains(other));
        trial.insert(name.to_owned());
        let (earlier, waiting) = (self.revisions.claimed(&before), self.waiting_for_a_place());
        self.revisions.claim(name, earlier, &trial, &waiting, self.tools.clock.now());
        if let Some(claiming) = self.revisions.entries.get(name) {
            entry.age.clone_from(&claiming.age);
        }
        let config = self.config();
        let arrange = |shared: &[Layer]| self.revisions.arrange_with(Some(name), &trial, shared);
        let arranged = match arrange(&self.shared(config.as_ref())) {
            Ok(arranged) => arranged,
            Err(Unfit { reason, message, .. }) => {
                let fits_alone = arrange(&self.settings).is_ok();
                self.revisions.put_back(name, kept);
                if !fits_alone {
                    return Ok(Some(Err(NotAdmitted::refused(reason, message))));
                }
                // The revision and the serving ones are valid. The revision waits until the owner corrects the settings.
                self.waiting.insert(name.to_owned(), entry.content);
                let transition =
                    Transition::new(RevisionState::Pending, reason, format!("ConfigMap {OPERATOR_CONFIG}: {message}"));
                return Ok(Some(Err(NotAdmitted { transition, again: true })));
            }
        };
        if let Content::Settings(policy, _) = &entry.content {
            let tried = self.tried(name, policy, &entry, &trial, arranged).await;
            if !matches!(tried, Some(Ok(()))) {
                self.revisions.put_back(name, kept);
                return Ok(tried);
            }
            self.fairness.take(&found.source.namespace);
        }
        if let Some(revision) = self.records.get(name).cloned()
            && let Err(Taken(config_map)) = self.store.keep(&revision, package).await?
        {
            self.revisions.put_back(name, kept);
            self.waiting.insert(name.to_owned(), entry.content);
            let message = format!(
                "the operator stores a serving revision in a ConfigMap, but another one has the name {config_map}: delete it"
            );
            let transition = Transition::new(RevisionState::Pending, "NameTaken", message);
            return Ok(Some(Err(NotAdmitted { transition, again: true })));
        }
        let asked = self.asked(name);
        self.counted.insert(name.to_owned());
        // A revision that replaces a serving one keeps its place.
        let replaces = before.iter().any(|other| self.records.status(other).state == RevisionState::Active);
        let kept_out = if replaces { None } else { self.revisions.kept_out(&entry, &trial) };
        let transition = match kept_out {
            Some(why) => Transition::new(RevisionState::Conflict, why.reason, why.message),
            None => Transition::new(RevisionState::Active, "Active", entry.content.remarks().join("; ")),
        };
        let is_there = self.enter(name, transition, |status| {
            describe(status, &entry);
            status.retried = asked;
        });
        if !is_there.await? {
            // A revision without a record is not admitted: if it replaced the serving one, no policy would serve.
            self.revisions.put_back(name, kept);
            self.waiting.insert(name.to_owned(), entry.content);
            let message = "its record was deleted during the check, which starts again";
            let transition = Transition::new(RevisionState::Pending, "Interrupted", message);
            return Ok(Some(Err(NotAdmitted { transition, again: true })));
        }
        self.checking.remove(name);
        // Two revisions of a source never serve together, so these actions do not wait for the next plan.
        for other in before {
            self.execute(Action::Replace { name: other, by: name.to_owned() }, &[]).await?;
        }
        Ok(Some(Ok(())))
    }
}

/// Writes the policy, version, kinds and other facts of a revision into its status.
fn describe(status: &mut PolicyRevisionStatus, entry: &Entry) {
    match &entry.content {
        Content::Policy(policy, _) => {
            status.policy = Some(policy.id().name.clone());
            status.version = Some(policy.id().version.clone());
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
