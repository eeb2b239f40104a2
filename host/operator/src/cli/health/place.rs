//! The flags that choose the cluster, the namespaces and the operator that a command asks about.

use clap::Args;
use kube::Client;

use super::super::{
    connection::Connection,
    facts::{ClusterFacts, OperatorFacts, OperatorPolicies},
};

/// Flags that name a cluster and the operator in it.
#[derive(Debug, Args)]
pub(in crate::cli) struct ClusterFlags {
    #[command(flatten)]
    pub(in crate::cli) connection: Connection,
    #[command(flatten)]
    facts: ClusterFacts,
    #[command(flatten)]
    own: OperatorPolicies,
}

impl ClusterFlags {
    /// Returns the connection, and the facts about the operator.
    pub(in crate::cli) fn split(self) -> (Connection, OperatorFacts) {
        let Self { connection, facts, own: OperatorPolicies { policies } } = self;
        (connection, OperatorFacts { cluster: facts.cluster(), policies })
    }
}

/// The namespace of one object.
#[derive(Debug, Args)]
pub(super) struct NamespaceFlag {
    /// Namespace of the object; default: the namespace of the kubeconfig's context
    #[arg(short, long, value_parser = super::super::namespace)]
    namespace: Option<String>,
}

impl NamespaceFlag {
    /// Returns the namespace that the user named, or the namespace of the context.
    pub(super) fn or_of_context(self, client: &Client) -> String {
        self.namespace.unwrap_or_else(|| client.default_namespace().to_owned())
    }
}

/// One namespace or all namespaces.
#[derive(Debug, Args)]
pub(super) struct NamespacesFlag {
    /// Namespace of the objects; default: the namespace of the kubeconfig's context
    #[arg(short, long, value_parser = super::super::namespace)]
    namespace: Option<String>,
    /// Look into all namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
}

impl NamespacesFlag {
    /// Returns the namespace, or `None` for all namespaces.
    pub(super) fn of(self, client: &Client) -> Option<String> {
        let Self { namespace, all_namespaces } = self;
        (!all_namespaces).then(|| namespace.unwrap_or_else(|| client.default_namespace().to_owned()))
    }
}
