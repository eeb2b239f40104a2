//! The default policies of this process, as packages of their sources.

use std::{collections::BTreeSet, sync::Arc};

use kaos_crds::PolicySource;
use kaos_policy::{
    contract::Claim,
    manifest::Grants,
    policy::Policy,
    rollout::Rollout,
    settings::{Layer, Origin},
};
use tokio::time::Instant;

use crate::{
    catalogue::{
        Age,
        installed::{
            defaults::{Defaults, DefaultsRollout, default_source, is_default},
            records::Revision,
            revision_name::revision_name,
            revision_set::Content,
            sources::{Found, Held},
        },
    },
    package::Package,
};

/// The default policies of this process.
pub(super) struct DefaultPolicies {
    pub(super) all: Vec<DefaultPackage>,
    pub(super) rollout: DefaultsRollout,
    pub(super) reads: BTreeSet<String>,
    /// The time of the next attempt to record a policy; `None` if no attempt failed.
    pub(super) due: Option<Instant>,
}

/// A default policy of this process, as a package.
pub(super) struct DefaultPackage {
    pub(super) found: Found,
    pub(super) revision: String,
    pub(super) policy: Arc<Policy>,
    pub(super) package: Arc<Package>,
    pub(super) answers: AnswersAs,
}

/// How a default policy of this process answers for objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswersAs {
    /// The policy answers without a revision, as a policy of the process.
    Process {
        /// Whether this process knows that the PolicyRevision and the bytes of the policy are stored.
        is_recorded: bool,
    },
    /// The policy answers as a revision, because another default policy served before.
    Revision,
}

impl DefaultPolicies {
    pub(super) fn new(Defaults { policies, rollout, reads }: Defaults, home: &str) -> Self {
        let all = policies.into_iter().map(|default| {
            let source = default_source(home, &default.policy);
            let mut package = default.package;
            home.clone_into(&mut Arc::make_mut(&mut package).namespace);
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

    /// Returns whether the default policies of this process serve at once, even if other default policies are recorded.
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

    /// Returns whether this process ignores a recorded default policy at its start. The process ignores a recorded
    /// default policy if its own default policy answers without a revision, or if this version of the operator has no
    /// default policy for the kind.
    pub(super) fn is_over(&self, source: &PolicySource) -> bool {
        is_default(source) && self.of(source).is_none_or(|default| default.answers != AnswersAs::Revision)
    }

    /// Returns the policy of the process whose revision has this name, or `None` if there is no such policy.
    pub(super) fn own(&self, revision: &str) -> Option<Content> {
        let default = self.all.iter().find(|default| default.revision == revision)?;
        Some(Content::Policy(Arc::clone(&default.policy), default.package.file.settings.clone()))
    }

    /// Returns how a package of this source starts to serve. For a package of a user, the `policy.yaml` of the package
    /// decides.
    pub(super) fn rollout(&self, source: &PolicySource, package: &Package) -> Rollout {
        let own = &package.file.rollout;
        if is_default(source) { self.rollout.of(own) } else { own.clone() }
    }

    /// Returns whether this process's default policy with this source has all of these grants. The owner's limits need
    /// not allow such grants.
    pub(super) fn has_grants(&self, source: &PolicySource, grants: &Grants) -> bool {
        self.of(source).is_some_and(|own| grants.is_within(&own.package.file.grants))
    }

    /// Returns whether this process's default policy with this source emits and reads all types in these claims.
    pub(super) fn has_types(&self, source: &PolicySource, claims: &[Claim]) -> bool {
        let Some(own) = self.of(source) else { return false };
        let own = &own.policy.descriptor().claims;
        claims.iter().all(|claim| {
            claim.emits.iter().all(|it| own.iter().any(|own| own.emits.contains(it)))
                && claim.reads.iter().all(|it| own.iter().any(|own| own.reads.contains(it)))
        })
    }

    pub(super) fn of(&self, source: &PolicySource) -> Option<&DefaultPackage> {
        self.all.iter().find(|default| default.found.source == *source)
    }

    /// Returns a package in the form that the gate checks. A default policy of another version of the operator is
    /// allowed to read the same namespaces as the default policies of this process.
    pub(super) fn granted(&self, source: &PolicySource, package: &Arc<Package>) -> Arc<Package> {
        let mut package = Arc::clone(package);
        if is_default(source) && !self.reads.is_empty() {
            Arc::make_mut(&mut package).file.grants.namespaces.extend(self.reads.iter().cloned());
        }
        package
    }

    /// Returns whether a layer of settings comes from the `policy.yaml` of a default policy that answers as a revision.
    /// The revision contains these settings itself. Other default policies for the same kinds must not get these
    /// settings, so the settings of the process leave out this layer.
    pub(super) fn is_of_revision(&self, layer: &Layer) -> bool {
        let is_it = |default: &DefaultPackage| {
            default.answers == AnswersAs::Revision && layer.policy.as_ref() == Some(&default.policy.id().name)
        };
        matches!(layer.origin, Origin::PolicyFile(_)) && self.all.iter().any(is_it)
    }

    pub(super) fn set(&mut self, source: &PolicySource, answers: AnswersAs) {
        for default in self.all.iter_mut().filter(|default| default.found.source == *source) {
            default.answers = answers;
        }
    }
}

/// Returns whether the policy of this process replaces a recorded default policy that this process cannot use. If the
/// recorded default policy is being rolled out, returns false, because the rollout decides.
pub(super) fn gives_way(revision: &Revision) -> bool {
    let status = revision.status.as_ref();
    is_default(&revision.spec.source)
        && status.is_some_and(|status| status.state.is_let_in() && status.open_rollout().is_none())
}
