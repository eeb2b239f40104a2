//! The clients and values that all steps of installing policies use.

use std::sync::Arc;

use kaos_policy::{
    rollout::{Rollout, RolloutGate},
    settings::Layer,
};
use kube::Client;

use super::{CodeShare, Defaults, Gatekeeper, Previewer};
use crate::{
    budgets::Budgets,
    catalogue::{Catalogue, Grantable, Offer},
    clock::Clock,
    events::EventWriter,
    metrics::Metrics,
    processors::Processors,
    rbac::Duties,
    watch::Watch,
};

/// The values that only the installation of policies needs, in addition to the values in `Tools`.
pub struct Installing {
    /// The policies that the process loaded at startup.
    pub own: Vec<Offer>,
    /// The settings for the whole cluster. The layer of the operator's own ConfigMap contains the content that the
    /// ConfigMap had at startup. If a user deletes the ConfigMap, the content at startup applies.
    pub settings: Vec<Layer>,
    /// The policies of `own` that the operator records, so that another version of the operator can load them.
    pub defaults: Defaults,
    /// Turns packages into policies.
    pub gatekeeper: Gatekeeper,
    /// Whether the operator accepts policies in namespaces other than its own.
    pub in_namespaces: bool,
}

/// The values that all steps of installing policies use.
pub(crate) struct Tools {
    pub(crate) client: Client,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) watch: Watch,
    pub(crate) processors: Processors,
    pub(crate) duties: Duties,
    pub(crate) grantable: Grantable,
    pub(crate) code_share: CodeShare,
    pub(crate) budgets: Arc<Budgets>,
    pub(crate) clock: Clock,
    pub(crate) events: Arc<EventWriter>,
    pub(crate) previewer: Arc<dyn Previewer>,
    /// The limits that the effect of each installed package must keep.
    pub(crate) rollout_gate: RolloutGate,
    /// The defaults for the steps in which packages start to serve.
    pub(crate) rollout_defaults: Rollout,
}
