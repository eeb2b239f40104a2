//! Flags for the facts that policies see about a cluster.

use std::path::PathBuf;

use clap::Args;
use kaos_policy::contract::Cluster;

/// The flag for the operator's namespace.
#[derive(Debug, Clone, Args)]
pub(super) struct Home {
    /// Namespace that the operator runs in
    #[arg(long, env = "SYSTEM_NAMESPACE", default_value = super::HOME, value_parser = super::namespace)]
    pub(super) operator_namespace: String,
}

/// The policies that the running operator got from its flags. The cluster does not show these policies.
#[derive(Debug, Clone, Args)]
pub(super) struct OperatorPolicies {
    /// Component of a policy that the running operator got with --policy
    #[arg(long = "policy", value_name = "X.wasm")]
    pub(super) policies: Vec<PathBuf>,
}

/// The facts about a running operator that its cluster does not show.
#[derive(Debug, Clone)]
pub(super) struct OperatorFacts {
    pub(super) cluster: Cluster,
    /// The policies that the operator got with `--policy`.
    pub(super) policies: Vec<PathBuf>,
}

/// The facts that policies see about the cluster.
#[derive(Debug, Clone, Args)]
pub(super) struct ClusterFacts {
    #[command(flatten)]
    home: Home,
    /// DNS domain of the cluster's Services
    #[arg(long, env = "KUBERNETES_CLUSTER_DOMAIN", default_value = "cluster.local", value_parser = super::domain)]
    cluster_domain: String,
}

impl ClusterFacts {
    /// Returns the facts, without the list of served types.
    pub(super) fn cluster(self) -> Cluster {
        Cluster { domain: self.cluster_domain, operator_namespace: self.home.operator_namespace, served: Vec::new() }
    }
}
