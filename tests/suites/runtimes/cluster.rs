//! Runs objects with real processes until all objects are ready.
//!
//! The policies decide which children an object gets. For each Deployment among the children, the node runs a pod. An
//! object becomes ready when the probes of its pod pass.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use kaos_policy::contract::{Cluster, HOME};
use kaos_policy::kubernetes::Checks;
use kaos_policy::policy::Stack;
use kaos_policy::render::Renderer;
use kaos_policy::settings::{Layer, Origin};
use kaos_tests::stage::{Key, Stage, key};
use kaos_tests::{case, policies};
use serde_json::{Value, json};

use crate::node::Node;

/// Returns the registry of runtimes that the chart writes with the preset of KAOS 0.8.
fn registry() -> Result<Value> {
    let preset = std::fs::read_to_string(case::golden().join("../../host/operator/src/presets/kaos-0.8.yaml"))?;
    let preset: Value = serde_saphyr::from_str(&preset)?;
    let runtimes = json!({"runtimes": preset["mcpserver"]["runtimes"]});
    Ok(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kaos-mcp-runtimes", "namespace": HOME},
        "data": {"runtimes.yaml": runtimes.to_string()}}))
}

/// Objects, their children, and the node that runs the children's pods.
pub(crate) struct Running {
    pub(crate) node: Node,
    stage: Stage,
    objects: Vec<Value>,
    started: BTreeSet<String>,
}

impl Running {
    /// Starts the children in `given` unchanged. Applies `objects`, and starts the children that the policies plan for
    /// `objects`. Waits until every object is ready.
    pub(crate) fn start(name: &str, given: &[Value], objects: &[Value]) -> Result<Self> {
        let mut running = Self {
            node: Node::new(name)?,
            stage: Stage::new(renderers(case::default_environment()?)?),
            objects: given.to_vec(),
            started: BTreeSet::new(),
        };
        for object in [&registry()?].into_iter().chain(given).chain(objects) {
            running.stage.apply(object);
        }
        running.start_all(given)?;
        let keys: Vec<Key> = objects.iter().map(key).collect();
        loop {
            running.stage.settle()?;
            let children: Vec<Value> = keys.iter().flat_map(|key| running.stage.children_of(key)).collect();
            if !running.start_all(&children)? {
                break;
            }
        }
        for key in &keys {
            let status = running.stage.status_of(key);
            ensure!(status["ready"] == true, "{} {} is not ready: {status}", key.0, key.1);
        }
        Ok(running)
    }

    /// Starts the pods of new Deployments, and gives addresses to their Services. Waits until the pods are ready.
    /// Returns whether any Deployment is new.
    fn start_all(&mut self, children: &[Value]) -> Result<bool> {
        let of = |kind: &'static str| children.iter().filter(move |child| child["kind"] == kind);
        let text = |child: &Value| child["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let new: Vec<(String, &Value)> = of("Deployment")
            .map(|child| (text(child), child))
            .filter(|(name, _)| !self.started.contains(name))
            .collect();
        let objects: Vec<Value> = self.objects.iter().chain(children).cloned().collect();
        for (name, deployment) in &new {
            self.node.start(deployment, &objects).with_context(|| name.clone())?;
        }
        for service in of("Service").filter(|service| new.iter().any(|(name, _)| *name == text(service))) {
            self.node.serve(service)?;
        }
        for (name, _) in &new {
            self.node.pod(name)?.until_ready()?;
            self.stage.make_ready(name, 1);
            self.started.insert(name.clone());
        }
        Ok(!new.is_empty())
    }

    /// Returns the status of an object.
    pub(crate) fn status(&self, kind: &str, name: &str) -> Value {
        self.stage.status_of(&(kind.to_owned(), name.to_owned()))
    }
}

/// Returns the default policies with the settings that the programs on the node need. Each Agent gets a token, as in
/// KAOS 0.8. Each proxy gets the permission to run without a master key, because LiteLLM otherwise requires one.
pub(crate) fn renderers(environment: BTreeMap<String, String>) -> Result<BTreeMap<String, Renderer>> {
    let account = json!({"serviceAccount": {"enabled": true, "audience": "kaos-gateway"}});
    let keyless = json!({"proxyConfig": {"withoutMasterKey": true}});
    let layers = [
        Layer::tree(Origin::CommandLine, "agent", account),
        Layer::tree(Origin::CommandLine, "modelapi", keyless),
        Layer::env(Origin::Environment, environment),
    ];
    let mut renderers = BTreeMap::new();
    for policy in policies::native()? {
        for claim in &policy.descriptor().claims {
            let stack = Stack::single(Arc::clone(&policy))?;
            let renderer = Renderer::new(&stack, &layers, Cluster::default())?.with_checks(Checks::Fields);
            renderers.insert(claim.primary.kind.clone(), renderer);
        }
    }
    Ok(renderers)
}
