//! What installing policies works with.

use std::sync::Arc;

use kaos_policy::settings::Layer;
use kube::Client;

use super::Gatekeeper;
use crate::{
    catalogue::{Catalogue, Grantable, Offer},
    metrics::Metrics,
    processors::Processors,
    rbac::Duties,
    reconcile::Clock,
    watch::Watch,
};

/// What installing needs beside what the operator has.
pub struct Installing {
    /// What the process brought along.
    pub own: Vec<Offer>,
    /// The settings that hold everywhere. Those of the operator's own ConfigMap are what the process began with, and hold
    /// where that is gone.
    pub settings: Vec<Layer>,
    /// From packages to policies.
    pub gatekeeper: Gatekeeper,
    /// Whether namespaces other than the operator's may have policies of their own.
    pub in_namespaces: bool,
}

/// What installing does its work with.
pub(crate) struct Tools {
    pub(crate) client: Client,
    pub(crate) catalogue: Arc<Catalogue>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) watch: Watch,
    pub(crate) processors: Processors,
    pub(crate) duties: Duties,
    pub(crate) grantable: Grantable,
    pub(crate) clock: Clock,
    pub(crate) instance: String,
}
