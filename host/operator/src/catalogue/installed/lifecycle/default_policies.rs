//! Records the default policies that serve, and lets those of another version of the operator serve on.
//!
//! If no other default policy is recorded, the policy of the process answers, without a revision, and the operator
//! records it. Otherwise the policy of the process is the new content of its source, like the new content of a
//! ConfigMap, and goes through the lifecycle of packages.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use kaos_crds::{PolicyRevisionStatus, PolicySource, RevisionState};
use kaos_policy::{
    contract::Claim,
    manifest::Grants,
    policy::Policy,
    rollout::Rollout,
    settings::{Layer, Origin},
};
use tokio::time::Instant;

use super::{BACKOFF, Found, Held, Lifecycle, StepError, Transition, execute::end, naming::revision_name};
use crate::{
    catalogue::{
        Age,
        installed::{
            defaults::{Defaults, DefaultsRollout, default_source, is_default},
            records::{NOT_LOADED, Revision},
            revision_set::Content,
            store::Taken,
        },
    },
    package::Package,
    timestamps::written,
};

/// The delay after which the operator tries again to record a default policy.
const RECORD_AGAIN: Duration = Duration::from_secs(30);

/// The default policies of this process.
pub(super) struct DefaultPolicies {
    all: Vec<DefaultPackage>,
    rollout: DefaultsRollout,
    reads: BTreeSet<String>,
    /// The time of the next attempt to record a policy; `None` if no attempt failed.
    due: Option<Instant>,
}

/// A default policy of this process, as a package.
struct DefaultPackage {
    found: Found,
    revision: String,
    policy: Arc<Policy>,
    package: Arc<Package>,
    answers: AnswersAs,
}

/// How a default policy of this process answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswersAs {
    /// The policy answers as a policy of the process.
    Process {
        /// Whether the record and the bytes of the policy are known to be stored.
        is_recorded: bool,
    },
    /// The policy is a revision: another default policy served before.
    Revision,
}

impl DefaultPolicies {
    pub(super) fn new(Defaults { policies, rollout, reads }: Defaults, home: &str) -> Self {
        let all = policies.into_iter().map(|default| {
            let source = default_source(home, &default.policy);
            let mut package = default.package;
            Arc::make_mut(&mut package).namespace = home.to_owned();
            let digest = package.digest();
            let revision = revision_name(&source, digest, home);
            let age = Age::new(None, home.to_owned(), source.config_map.clone());
            let found = Found { source, age, held: Some(Held { digest, package: Ok(Arc::clone(&package)) }) };
            let answers = AnswersAs::Process { is_recorded: false };
            DefaultPackage { found, revision, policy: default.policy, package, answers }
        });
        Self { all: all.collect(), rollout, reads, due: None }
    }

    /// Returns whether the operator records no default policies.
    pub(super) fn are_none(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns whether the default policies serve at once, whatever is recorded.
    pub(super) fn serve_at_once(&self) -> bool {
        self.rollout == DefaultsRollout::Now
    }

    /// Returns the default policies as packages.
    pub(super) fn found(&self) -> impl Iterator<Item = Found> {
        self.all.iter().map(|default| default.found.clone())
    }

    /// Returns whether a source has a default policy that answers as a policy of the process.
    pub(super) fn is_of_process(&self, source: &PolicySource) -> bool {
        self.of(source).is_some_and(|default| default.answers != AnswersAs::Revision)
    }

    /// Returns whether a process ignores a recorded default policy at its start: because the policy of the process
    /// answers, or because this version has no policy for its kind.
    pub(super) fn is_over(&self, source: &PolicySource) -> bool {
        is_default(source) && self.of(source).is_none_or(|default| default.answers != AnswersAs::Revision)
    }

    /// Returns the policy of the process with this revision.
    pub(super) fn own(&self, revision: &str) -> Option<Content> {
        let default = self.all.iter().find(|default| default.revision == revision)?;
        Some(Content::Policy(Arc::clone(&default.policy), default.package.file.settings.clone()))
    }

    /// Returns how a package of this source starts to serve. Packages of users decide for themselves.
    pub(super) fn rollout(&self, source: &PolicySource, package: &Package) -> Rollout {
        let own = &package.file.rollout;
        if is_default(source) { self.rollout.of(own) } else { own.clone() }
    }

    /// Returns whether the default policy of this process for a source has at least these grants, so that the owner's
    /// limits for grants need not allow them.
    pub(super) fn has_grants(&self, source: &PolicySource, grants: &Grants) -> bool {
        self.of(source).is_some_and(|own| grants.is_within(&own.package.file.grants))
    }

    /// Returns whether the default policy of this process for a source emits and reads at least the types of these
    /// claims.
    pub(super) fn has_types(&self, source: &PolicySource, claims: &[Claim]) -> bool {
        let Some(own) = self.of(source) else { return false };
        let own = &own.policy.descriptor().claims;
        claims.iter().all(|claim| {
            claim.emits.iter().all(|it| own.iter().any(|own| own.emits.contains(it)))
                && claim.reads.iter().all(|it| own.iter().any(|own| own.reads.contains(it)))
        })
    }

    fn of(&self, source: &PolicySource) -> Option<&DefaultPackage> {
        self.all.iter().find(|default| default.found.source == *source)
    }

    /// Returns a package as the gate checks it. A default policy of another version gets the namespaces that default
    /// policies of this process are allowed to read.
    pub(super) fn granted(&self, source: &PolicySource, package: &Arc<Package>) -> Arc<Package> {
        let mut package = Arc::clone(package);
        if is_default(source) && !self.reads.is_empty() {
            Arc::make_mut(&mut package).file.grants.namespaces.extend(self.reads.iter().cloned());
        }
        package
    }

    /// Returns whether a layer of settings belongs to a policy of the process that answers as a revision. The revision
    /// has these settings itself, and other default policies for its kinds must not get them.
    fn is_of_revision(&self, layer: &Layer) -> bool {
        let is_it = |default: &DefaultPackage| {
            default.answers == AnswersAs::Revision && layer.policy.as_ref() == Some(&default.policy.id().name)
        };
        matches!(layer.origin, Origin::PolicyFile(_)) && self.all.iter().any(is_it)
    }

    fn set(&mut self, source: &PolicySource, answers: AnswersAs) {
        for default in self.all.iter_mut().filter(|default| default.found.source == *source) {
            default.answers = answers;
        }
    }
}

impl Lifecycle {
    /// Compares the default policies of this process with the recorded ones. A policy is a revision if another default
    /// policy of its source serves or has to serve again, or if its own rollout goes on.
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

    /// Lets the policies of this process serve instead of recorded default policies that do not fit the settings of this
    /// process. During a rollout, the rollout waits for other settings, like that of a package.
    pub(super) async fn replace_unfit_defaults(&mut self) {
        loop {
            let serving = self.facts().serving();
            let Err(unfit) = self.revisions.arrange(&serving, &self.settings) else { return };
            let concerned = unfit.concerned.iter().find_map(|name| {
                self.records
                    .get(name)
                    .filter(|revision| self.revisions.entries.contains_key(&**name) && self.gives_way(revision))
            });
            let Some(revision) = concerned.cloned() else { return };
            self.replace_unloadable(&revision, &unfit.message).await;
        }
    }

    /// Removes the settings of the process that belong to default policies that are revisions.
    pub(super) fn leave_settings_to_revisions(&mut self) {
        let defaults = &self.defaults;
        self.settings.retain(|layer| !defaults.is_of_revision(layer));
    }

    /// Returns whether a recorded default policy has to make room for the policy of this process, because this process
    /// cannot load it. During a rollout, the rollout decides.
    pub(super) fn gives_way(&self, revision: &Revision) -> bool {
        let status = revision.status.as_ref();
        is_default(&revision.spec.source)
            && status.is_some_and(|status| status.state.is_let_in() && status.open_rollout().is_none())
    }

    /// Lets the policy of this process serve instead of a recorded default policy that this process cannot load.
    pub(super) async fn replace_unloadable(&mut self, revision: &Revision, why: &str) {
        let name = revision.metadata.name.clone().unwrap_or_default();
        tracing::error!(revision = name, why, "default policy of another version cannot be loaded");
        let message = format!(
            "this version of the operator cannot load this default policy ({why}), so its own default policy serves at \
             once"
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
