//! Combines a stack of policies with its settings and with the facts about the cluster: all inputs of an answer except
//! the object and its needs.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};

use super::{
    DecisionKey,
    observed::{self, Observer},
};
use crate::{
    code::Sandbox, contract::Cluster, failure::Failure, guard::UserPrivileges, kubernetes::Checks, manifest::Privilege,
    memo::Memo, policy::Policy, settings::Effective,
};

/// A policy of a stack, with its settings.
#[derive(Clone)]
pub(super) struct Bound {
    pub(super) policy: Arc<Policy>,
    pub(super) settings: Arc<Effective>,
    /// The observer that sees the calls of the policy.
    pub(super) observer: Option<Arc<dyn Observer>>,
}

impl Bound {
    /// Opens a fresh sandbox of the policy.
    pub(super) fn open(&self) -> Result<Box<dyn Sandbox + '_>, Failure> {
        observed::open(&self.policy, self.observer.as_ref())
    }
}

/// A stack with its settings, the facts about the cluster, and the options for the checks of its answers.
pub(super) struct Binding {
    pub(super) base: Bound,
    pub(super) overlays: Vec<Bound>,
    pub(super) cluster: Cluster,
    pub(super) user_privileges: UserPrivileges,
    pub(super) grantable: Option<BTreeSet<Privilege>>,
    pub(super) checks: Checks,
    pub(super) memo: Option<Arc<Memo>>,
    pub(super) decision_key: DecisionKey,
}

impl Binding {
    /// Returns each layer's policy and settings, the lowest layer first.
    pub(super) fn layers(&self) -> impl Iterator<Item = (&Arc<Policy>, &Arc<Effective>)> {
        std::iter::once(&self.base).chain(&self.overlays).map(|bound| (&bound.policy, &bound.settings))
    }

    /// Returns every input in the binding that affects answers, except the policies and their settings.
    pub(super) fn context(&self) -> Value {
        json!([self.cluster, self.user_privileges == UserPrivileges::Allowed, self.grantable, self.checks])
    }
}
