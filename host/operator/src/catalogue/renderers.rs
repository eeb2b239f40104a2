//! Builds the renderers of the active policies, and rebuilds them when the served types change.

use std::{collections::BTreeSet, sync::Arc};

use kaos_policy::{
    contract::{Cluster, ResourceType},
    guard::UserPrivileges,
    kubernetes::Checks,
    manifest::Privilege,
    memo::Memo,
    render::{DecisionKey, Observer, Renderer},
    settings::SettingsErrors,
};

use super::{Kind, made::BuiltRenderer};
use crate::locking::lock;

/// Builds the renderers and reuses them until the served types change.
pub(crate) struct Renderers {
    cluster: Cluster,
    user_privileges: UserPrivileges,
    grantable: Option<BTreeSet<Privilege>>,
    memo: Arc<Memo>,
    observer: Arc<dyn Observer>,
    decision_key: DecisionKey,
}

impl Renderers {
    /// Starts without any renderers. `cluster` does not contain the served types, because these types change while the
    /// process runs. `grantable` are the privileges that settings of packages can set. `memo` is the size limit of the
    /// cache for answers, in bytes. `observer` sees all calls of policies.
    pub(crate) fn new(
        cluster: Cluster,
        user_privileges: UserPrivileges,
        grantable: Option<BTreeSet<Privilege>>,
        memo: usize,
        observer: Arc<dyn Observer>,
    ) -> Self {
        let (memo, decision_key) = (Arc::new(Memo::new(memo)), DecisionKey::default());
        Self { cluster, user_privileges, grantable, memo, observer, decision_key }
    }

    /// Sets the key with which the host computes the ids of decisions.
    pub(crate) fn with_decision_key(mut self, key: DecisionKey) -> Self {
        self.decision_key = key;
        self
    }

    /// Returns the renderer for a kind.
    pub(crate) fn of(
        &self,
        kind: &Kind,
        is_served: impl Fn(&ResourceType) -> bool,
    ) -> Result<Arc<Renderer>, SettingsErrors> {
        let served = kind.served(is_served);
        let mut made = lock(&kind.made);
        if let Some(made) = made.as_ref().filter(|made| made.served == served) {
            return Ok(Arc::clone(&made.renderer));
        }
        let renderer = Arc::new(self.build(kind, served.clone())?.with_observer(&self.observer));
        *made = Some(BuiltRenderer { served, renderer: Arc::clone(&renderer) });
        Ok(renderer)
    }

    /// Returns a renderer for a kind. The observer does not see the calls of this renderer.
    pub(crate) fn unobserved(
        &self,
        kind: &Kind,
        is_served: impl Fn(&ResourceType) -> bool,
    ) -> Result<Arc<Renderer>, SettingsErrors> {
        self.build(kind, kind.served(is_served)).map(Arc::new)
    }

    fn build(&self, kind: &Kind, served: Vec<ResourceType>) -> Result<Renderer, SettingsErrors> {
        let renderer = kind
            .renderer_on(&self.cluster, served)?
            .with_memo(Arc::clone(&self.memo))
            .with_decision_key(self.decision_key.clone())
            .with_user_privileges(self.user_privileges)
            .with_grantable_privileges(self.grantable.clone())
            // Do not check for unknown fields: a newer API server may have fields that this program does not know. The
            // API server reports unknown fields itself.
            .with_checks(Checks::Values);
        Ok(renderer)
    }
}
