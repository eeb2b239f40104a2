//! The control plane, with everything that an operator's chart installs, except the operator itself.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use kaos_tests::control_plane::audit::Tail;
use kaos_tests::control_plane::{self, Audit, ControlPlane, Extent, Group, access, chart};
use kube::Client;
use serde_json::json;

/// The cluster on which to measure.
#[derive(Debug)]
pub(crate) enum Cluster {
    /// A new cluster with etcd and kube-apiserver for each operator.
    New,
    /// An existing cluster.
    Given {
        /// The administrator's kubeconfig.
        kubeconfig: PathBuf,
        /// The audit log of the API server.
        audit: PathBuf,
    },
}

/// A cluster that is ready for an operator.
pub(crate) struct Stage {
    /// The administrator's client.
    pub(crate) client: Client,
    namespace: String,
    user: String,
    audit: Audit,
    folder: PathBuf,
    kubeconfig: PathBuf,
    environment: Vec<(String, String)>,
    arguments: String,
    group: Group,
    // Keep this field after the clients of the cluster: Rust drops fields in the order of their declaration.
    own: Option<ControlPlane>,
}

impl Stage {
    /// Prepares the cluster, and creates a namespace for the load.
    pub(crate) async fn set(cluster: &Cluster, install: &Path, namespace: &str) -> Result<Self> {
        let own = matches!(cluster, Cluster::New).then(|| ControlPlane::of(Extent::Api)).transpose()?;
        let (admin, audit) = match (cluster, &own) {
            (Cluster::Given { kubeconfig, audit }, _) => (kubeconfig.clone(), Audit::new(audit.clone())),
            (Cluster::New, Some(own)) => (own.kubeconfig(), own.audit()),
            (Cluster::New, None) => anyhow::bail!("the control plane was not started"),
        };
        let folder = match &own {
            Some(own) => own.folder().join("log"),
            None => std::env::temp_dir().join(format!("kaos-bench-{}", std::process::id())),
        };
        std::fs::create_dir_all(&folder)?;
        let client = control_plane::client(&admin).await?;
        for name in [namespace, "kaos-system"] {
            chart::apply(&client, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
                .await?;
        }
        let account = chart::install(&client, install).await?;
        let kubeconfig = folder.join("operator.kubeconfig");
        access::with_token(&admin, &account.token(&client).await?, None, &kubeconfig)?;
        let pod = chart::pod(install)?;
        let arguments = pod.as_ref().map(|pod| pod.arguments_in(&folder)).transpose()?.unwrap_or_default();
        if let Some(argument) = arguments.iter().find(|argument| argument.contains(char::is_whitespace)) {
            anyhow::bail!("{}: the shell would split the argument {argument}", install.display());
        }
        Ok(Self {
            arguments: arguments.join(" "),
            environment: pod.map(|pod| pod.environment).unwrap_or_default(),
            group: Group::new(&folder.join("nothing"))?,
            namespace: namespace.to_owned(),
            user: account.user(),
            client,
            audit,
            folder,
            kubeconfig,
            own,
        })
    }

    /// Returns the namespace of the load.
    pub(crate) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Starts to record the operator's requests.
    pub(crate) fn listen(&self) -> Result<Tail> {
        Ok(self.audit.tail(self.audit.mark()?, &self.user))
    }

    /// Returns the folder for logs.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the operator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Returns the operator's environment.
    pub(crate) fn environment(&self) -> &[(String, String)] {
        &self.environment
    }

    /// Returns the arguments of the operator's container, without the addresses of its pages.
    pub(crate) fn arguments(&self) -> &str {
        &self.arguments
    }

    /// Returns the process group that ends when the bench ends.
    pub(crate) fn group(&self) -> &Group {
        &self.group
    }

    /// Returns whether the bench started the cluster.
    pub(crate) fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Returns the processor time of etcd and the API server so far, or `None` if the bench did not start these
    /// processes.
    pub(crate) fn processor(&self) -> Option<Duration> {
        self.own.as_ref().map(ControlPlane::processor)
    }
}
