//! Renders objects with a stack of policies.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;

use super::{
    DecisionKey, RenderError, Rendered,
    binding::{Binding, Bound},
    observed::Observer,
    pass::{self, Keep},
};
use crate::{
    contract::Cluster,
    digest::Digest,
    guard::UserPrivileges,
    kubernetes::Checks,
    lookup::Lookup,
    manifest::Privilege,
    memo::Memo,
    policy::{Policy, Stack},
    settings::{Effective, Layer, SettingsErrors},
};

/// A stack of policies with their settings and the facts of the cluster: all inputs of a pass except the object.
pub struct Renderer(pub(super) Binding);

impl Renderer {
    /// Creates a renderer. Resolves and checks the settings of each layer only once for all objects.
    pub fn new(stack: &Stack, settings: &[Layer], cluster: Cluster) -> Result<Self, SettingsErrors> {
        let bind = |policy: &Arc<Policy>| {
            let settings = policy.settings(settings)?;
            Ok(Bound { policy: Arc::clone(policy), settings, observer: None })
        };
        let base = bind(stack.base())?;
        let overlays = stack.overlays().iter().map(bind).collect::<Result<_, SettingsErrors>>()?;
        let user_privileges = UserPrivileges::default();
        let checks = Checks::default();
        let (grantable, memo, decision_key) = (None, None, DecisionKey::default());
        Ok(Self(Binding { base, overlays, cluster, user_privileges, grantable, checks, memo, decision_key }))
    }

    /// Makes the renderer store answers in this memo, and return valid answers from the memo.
    #[must_use]
    pub fn with_memo(mut self, memo: Arc<Memo>) -> Self {
        self.0.memo = Some(memo);
        self
    }

    /// Makes an observer see each call of the policies.
    #[must_use]
    pub fn with_observer(mut self, observer: &Arc<dyn Observer>) -> Self {
        for bound in std::iter::once(&mut self.0.base).chain(&mut self.0.overlays) {
            bound.observer = Some(Arc::clone(observer));
        }
        self
    }

    /// Sets the key of the ids of decisions.
    #[must_use]
    pub fn with_decision_key(mut self, key: DecisionKey) -> Self {
        self.0.decision_key = key;
        self
    }

    /// Sets whether the fields that a user writes in an object's spec can raise privileges.
    #[must_use]
    pub fn with_user_privileges(mut self, rule: UserPrivileges) -> Self {
        self.0.user_privileges = rule;
        self
    }

    /// Limits the privileges that settings of packages and of the operator's own ConfigMap can raise. `None` allows all
    /// privileges. Settings from the operator's flags can raise all privileges.
    #[must_use]
    pub fn with_grantable_privileges(mut self, listed: Option<BTreeSet<Privilege>>) -> Self {
        self.0.grantable = listed;
        self
    }

    /// Sets how strictly the host checks manifests for values that an API server would refuse. By default, the host
    /// does not check them.
    #[must_use]
    pub fn with_checks(mut self, checks: Checks) -> Self {
        self.0.checks = checks;
        self
    }

    /// Returns each layer's policy and settings, the lowest layer first.
    pub fn layers(&self) -> impl Iterator<Item = (&Arc<Policy>, &Arc<Effective>)> {
        self.0.layers()
    }

    /// Renders an object. Policies do not see the object's status.
    pub fn render(&self, object: &Value, lookup: &dyn Lookup) -> Result<Rendered, RenderError> {
        pass::run(&self.0, object, lookup, Keep::Answer)
    }

    /// Renders an object for a caller that renders each of many objects once. Uses stored answers, but stores none:
    /// otherwise, the memo would lose the answers of other callers.
    pub fn render_unstored(&self, object: &Value, lookup: &dyn Lookup) -> Result<Rendered, RenderError> {
        pass::run(&self.0, object, lookup, Keep::Nothing)
    }

    /// Returns a digest of all inputs of a pass over an object, except the objects that the policies need. Equal
    /// digests and equal needed objects give equal answers. Returns `None` if the host refuses the object without
    /// asking a policy.
    pub fn inputs_digest(&self, object: &Value) -> Option<Digest> {
        pass::inputs_digest(&self.0, object)
    }
}
