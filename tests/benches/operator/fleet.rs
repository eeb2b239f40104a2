//! A cluster that listens on loopback, with a fleet of Agents. Each group of a thousand Agents shares a namespace, a
//! ModelAPI and an MCPServer.

use std::path::{Path, PathBuf};

use anyhow::Result;
use kaos_cluster::{Cluster, Server};
use kaos_tests::case;
use kaos_tests::harness::definitions::definitions;
use kaos_tests::harness::kinds::Kind;
use kaos_tests::harness::samples::{agent, mcp_server, model_api, namespace};
use kaos_tests::harness::scenario::SYSTEM;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

/// The number of Agents that share a ModelAPI.
const SHARE: usize = 1_000;

/// A cluster that contains a fleet of Agents.
pub(crate) struct Fleet {
    client: Client,
    /// Number of Agents in the cluster.
    pub(crate) agents: usize,
    /// The kubeconfig for operators.
    pub(crate) kubeconfig: PathBuf,
    _server: Server,
}

impl Fleet {
    /// Starts a cluster and creates the fleet. Starts no operator.
    pub(crate) async fn new(agents: usize, folder: &Path) -> Result<Self> {
        let cluster = Cluster::start();
        let server = cluster.listen(([127, 0, 0, 1], 0).into()).await?;
        let kubeconfig = folder.join("kubeconfig");
        std::fs::write(&kubeconfig, server.kubeconfig("admin"))?;
        let client = Client::new(cluster.service(), "default");
        let fleet = Self { client, agents, kubeconfig, _server: server };
        for definition in definitions()? {
            fleet.apply("", &definition).await?;
        }
        cluster.settled().await;
        fleet.furnish().await?;
        cluster.settled().await;
        Ok(fleet)
    }

    async fn furnish(&self) -> Result<()> {
        for name in std::iter::once(SYSTEM.to_owned()).chain(self.namespaces()) {
            self.apply("", &namespace(&name)).await?;
        }
        for object in case::documents(&case::golden().join("runtimes.yaml"))? {
            self.apply(SYSTEM, &object).await?;
        }
        for namespace in self.namespaces() {
            self.apply(&namespace, &model_api("llm")).await?;
            self.apply(&namespace, &mcp_server("tools")).await?;
        }
        for number in 0..self.agents {
            let config = json!({"description": format!("answers questions, number {number}"),
                "instructions": "Answer in one sentence, and say what you did not know.",
                "env": [{"name": "TEAM", "value": "research"}]});
            let more = json!({"mcpServers": ["tools"], "config": config});
            self.apply(&namespace_of(number), &agent(&format!("agent-{number}"), "llm", &more)).await?;
        }
        Ok(())
    }

    fn namespaces(&self) -> impl Iterator<Item = String> + use<> {
        (0..self.agents).step_by(SHARE).map(namespace_of)
    }

    /// Changes the ModelAPI of the first thousand Agents by a merge patch.
    pub(crate) async fn change_model(&self, patch: &Value) -> Result<()> {
        let params = PatchParams { field_manager: Some("user".to_owned()), ..PatchParams::default() };
        self.api("ModelAPI", &namespace_of(0)).patch("llm", &params, &Patch::Merge(patch)).await?;
        Ok(())
    }

    async fn apply(&self, namespace: &str, object: &Value) -> Result<()> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
        let api = self.api(&kind, namespace);
        api.patch(&name, &PatchParams::apply("user"), &Patch::Apply(object)).await?;
        Ok(())
    }

    fn api(&self, kind: &str, namespace: &str) -> Api<DynamicObject> {
        let kind = Kind::named(kind);
        if kind.namespaced {
            Api::namespaced_with(self.client.clone(), namespace, &kind.resource())
        } else {
            Api::all_with(self.client.clone(), &kind.resource())
        }
    }
}

fn namespace_of(agent: usize) -> String {
    format!("team-{}", agent / SHARE)
}
