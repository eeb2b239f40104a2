//! Starts a real control plane, and the chart's operator with the preset `kaos-0.8`. The cluster's only node runs pods
//! as processes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kaos_tests::control_plane::{ControlPlane, Extent, Process, chart};
use kaos_tests::harness::read::{entries, name};
use kaos_tests::harness::scenario::SYSTEM;
use kaos_tests::harness::{World, is_ready, samples};
use serde_json::Value;

use crate::kubelet::Kubelet;
use crate::node::{LOOK, Pod};

/// The settings that the programs on the node need, in addition to the preset. The first setting permits LiteLLM to run
/// without a master key: without this permission or a key, this version of LiteLLM does not start. The second setting
/// lets Agents read the memories of users, although users have no identity on a cluster that is not secured.
const SETTINGS: [&str; 4] =
    ["--set", "modelapi.proxyConfig.withoutMasterKey=true", "--set", "agent.memory.userIdentity=true"];

/// The time limit until all objects of a test are ready.
///
/// The time is long because all processes of a test start at the same time.
const PATIENCE: Duration = Duration::from_mins(10);

/// A cluster, with its operator and its node.
pub(crate) struct Cluster {
    control: ControlPlane,
    kubelet: Kubelet,
    operator: Process,
}

impl Cluster {
    /// Returns the cluster that all tests of this process share. The first caller starts the cluster.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| {
            // Use a separate thread, because the caller is already inside an async runtime.
            let starting = std::thread::spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(Self::start(&chart::manifests()))
            });
            starting.join().unwrap().unwrap()
        })
    }

    async fn start(manifests: &Path) -> Result<Self> {
        Self::over(ControlPlane::of(Extent::WithoutNodes)?, "cluster", manifests).await
    }

    /// Starts the operator of the chart on a control plane, and adds a node. `folder` is the name of the node's folder.
    pub(crate) async fn over(control: ControlPlane, folder: &str, manifests: &Path) -> Result<Self> {
        let client = control.client().await?;
        let system = World::over(client.clone(), SYSTEM);
        system.apply(&samples::namespace(&system.namespace)).await;
        let kubelet = Kubelet::join(&control, folder)?;
        let account = chart::install(&client, manifests).await?;
        let pod = chart::pod(manifests)?.context("the chart has no Deployment")?;
        let kubeconfig = control.kubeconfig_for("operator", &account.token(&client).await?)?;
        let arguments = pod.arguments_in(control.folder())?.into_iter().chain(SETTINGS.map(str::to_owned));
        let arguments: Vec<String> = arguments.collect();
        let operator = Process::start(&control, "operator", &kubeconfig, &arguments, &pod.environment)?;
        Ok(Self { control, kubelet, operator })
    }

    /// Returns the control plane.
    pub(crate) fn control(&self) -> &ControlPlane {
        &self.control
    }

    /// Returns the folder of the node.
    pub(crate) fn folder_of_node(&self) -> PathBuf {
        self.kubelet.folder()
    }

    /// Creates a namespace for a test.
    pub(crate) async fn world(&self, namespace: &str) -> World {
        let world = World::over(self.control.client().await.unwrap(), namespace);
        world.apply(&samples::namespace(namespace)).await;
        world
    }

    /// Waits until all objects are ready. `objects` are keys such as `Agent/a`. If an object does not become ready,
    /// prints the logs of the processes.
    pub(crate) async fn until_ready(&self, world: &World, objects: &[String]) {
        let begun = Instant::now();
        let mut waiting: Vec<&String> = objects.iter().collect();
        while !waiting.is_empty() {
            let mut still = Vec::new();
            for at in waiting {
                if !is_ready(&world.look(at).await) {
                    still.push(at);
                }
            }
            waiting = still;
            if begun.elapsed() > PATIENCE {
                let mut statuses = Vec::new();
                for at in &waiting {
                    statuses.push(format!("{at}: {:#}", world.look(at).await["status"]));
                }
                let (statuses, log) = (statuses.join("\n"), self.operator.log());
                panic!("not ready:\n{statuses}\n{}\n{log}", self.kubelet.complaints());
            }
            tokio::time::sleep(LOOK).await;
        }
        println!("  {} objects of {} are ready after {:.0?}", objects.len(), world.namespace, begun.elapsed());
    }

    /// Returns the pods of a Deployment.
    pub(crate) async fn pods(&self, world: &World, deployment: &str) -> Vec<Arc<Pod>> {
        let wanted = world.look(&format!("Deployment/{deployment}")).await["spec"]["selector"]["matchLabels"].clone();
        let pods = world.list("Pod").await;
        let is_own = |pod: &&Value| {
            let labels = entries(pod, "labels");
            wanted
                .as_object()
                .is_some_and(|wanted| wanted.iter().all(|(label, value)| labels.get(label) == Some(value)))
        };
        pods.iter().filter(is_own).map(|pod| self.kubelet.pod(&world.namespace, name(pod)).unwrap()).collect()
    }

    /// Returns the pod of a Deployment.
    pub(crate) async fn pod(&self, world: &World, deployment: &str) -> Arc<Pod> {
        let mut pods = self.pods(world, deployment).await;
        assert_eq!(pods.len(), 1, "the pods of {deployment}");
        pods.remove(0)
    }
}
