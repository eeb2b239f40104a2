//! Renders objects by a stack of policies.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;

use super::{
    RenderError, Rendered,
    binding::{Binding, Bound},
    pass,
};
use crate::{
    contract::Cluster,
    guard::UserPrivileges,
    kubernetes::Checks,
    lookup::Lookup,
    manifest::Privilege,
    memo::Memo,
    policy::{Policy, Stack},
    settings::{Effective, Layer, SettingsErrors},
};

/// A stack of policies with their settings and the cluster's facts: everything but the object.
pub struct Renderer(pub(super) Binding);

impl Renderer {
    /// Binds a stack to settings and facts. The settings of each layer are resolved and checked here, once
    /// for all objects.
    pub fn new(stack: &Stack, settings: &[Layer], cluster: Cluster) -> Result<Self, SettingsErrors> {
        let bind = |policy: &Arc<Policy>| {
            let settings = Arc::new(policy.schema().resolve(&policy.id().name, settings)?);
            Ok(Bound { policy: Arc::clone(policy), settings })
        };
        let base = bind(stack.base())?;
        let overlays = stack.overlays().iter().map(bind).collect::<Result<_, SettingsErrors>>()?;
        let user_privileges = UserPrivileges::default();
        let checks = Checks::default();
        Ok(Self(Binding { base, overlays, cluster, user_privileges, grantable: None, checks, memo: None }))
    }

    /// Remembers answers in, and recalls them from, this memo.
    #[must_use]
    pub fn with_memo(mut self, memo: Arc<Memo>) -> Self {
        self.0.memo = Some(memo);
        self
    }

    /// Whether a user's own spec may raise privilege.
    #[must_use]
    pub fn with_user_privileges(mut self, rule: UserPrivileges) -> Self {
        self.0.user_privileges = rule;
        self
    }

    /// The privileges that settings may raise which somebody installs, or writes into the operator's own ConfigMap; all,
    /// where none are listed. Those of the process's own flags are not held to it.
    #[must_use]
    pub fn with_grantable_privileges(mut self, listed: Option<BTreeSet<Privilege>>) -> Self {
        self.0.grantable = listed;
        self
    }

    /// What is found out of manifests before an API server refuses them; nothing, unless it is said.
    #[must_use]
    pub fn with_checks(mut self, checks: Checks) -> Self {
        self.0.checks = checks;
        self
    }

    /// Each layer's policy and settings, the lowest first.
    pub fn layers(&self) -> impl Iterator<Item = (&Arc<Policy>, &Arc<Effective>)> {
        self.0.layers()
    }

    /// What Kubernetes should hold for an object. The object may carry a status; policies do not see it.
    pub fn render(&self, object: &Value, lookup: &dyn Lookup) -> Result<Rendered, RenderError> {
        pass::run(&self.0, object, lookup)
    }
}
