//! Joins the node to a cluster, like a kubelet and kube-proxy.
//!
//! This kubelet runs the pods that the scheduler binds to its node, and reports whether their probes pass. It also
//! creates volumes for volume claims, because the cluster has no provisioner. It restarts no container: if a process
//! ends, the pod has failed, and the `ReplicaSet` replaces the pod.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use anyhow::{Context, Result};
use kaos_tests::control_plane::chart::Account;
use kaos_tests::control_plane::{ControlPlane, client, create_node};
use kaos_tests::harness::World;
use kaos_tests::harness::kinds::Kind;
use kaos_tests::harness::read::{condition, name, text, uid};
use kaos_tests::harness::samples::volume_for;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use serde_json::{Value, json};

use crate::network::Network;
use crate::node::{Node, Pod, State};
use crate::pod::{Objects, list};

/// The name of the node in the cluster.
const NAME: &str = "processes";
/// The time between two polls of the cluster. Each poll lists all pods and Services.
const BEAT: Duration = Duration::from_millis(300);

/// The node of a cluster. When this value is dropped, the node's processes end.
pub(crate) struct Kubelet {
    node: Arc<Mutex<Node>>,
}

/// The part of the kubelet that runs in a separate thread.
struct Work {
    world: World,
    node: Weak<Mutex<Node>>,
    network: Network,
    /// The addresses of pods by name.
    addresses: BTreeMap<String, String>,
    /// How many addresses the kubelet has given to pods so far.
    given: u16,
}

impl Kubelet {
    /// Adds a node to a cluster that has no nodes. `folder` is the name of the node's folder.
    pub(crate) fn join(cluster: &ControlPlane, folder: &str) -> Result<Self> {
        let node = Node::new(folder)?;
        let network = Network::new(node.folder.clone());
        let node = Arc::new(Mutex::new(node));
        let (weak, kubeconfig) = (Arc::downgrade(&node), cluster.kubeconfig());
        std::thread::spawn(move || {
            if let Err(error) = work(weak, &kubeconfig, network) {
                println!("  the kubelet ended: {error:#}");
            }
        });
        Ok(Self { node })
    }

    /// Returns a pod.
    pub(crate) fn pod(&self, namespace: &str, name: &str) -> Result<Arc<Pod>> {
        lock(&self.node).pod(&key(namespace, name))
    }

    /// Returns the folder of the node.
    pub(crate) fn folder(&self) -> PathBuf {
        lock(&self.node).folder.clone()
    }

    /// Returns the state and the log of each pod that is not ready.
    pub(crate) fn complaints(&self) -> String {
        let mut node = lock(&self.node);
        let mut all = String::new();
        for name in node.names() {
            match node.state(&name) {
                Ok(State::Ready) => {}
                state => {
                    let log = node.pod(&name).map(|pod| pod.log()).unwrap_or_default();
                    all.push_str(&format!("--- {name}: {state:?}\n{log}\n"));
                }
            }
        }
        all
    }
}

fn lock(node: &Mutex<Node>) -> MutexGuard<'_, Node> {
    node.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the name that the node uses for a pod.
fn key(namespace: &str, name: &str) -> String {
    format!("{namespace}.{name}")
}

/// Creates the cluster's node, and does the kubelet's work until the value `node` is dropped.
fn work(node: Weak<Mutex<Node>>, kubeconfig: &Path, network: Network) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = client(kubeconfig).await?;
        create_node(&client, NAME).await?;
        let ready = json!([{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}]);
        let world = World::over(client, "default");
        world.patch_status(&format!("Node/{NAME}"), &json!({"conditions": ready})).await;
        let mut work = Work { world, node, network, addresses: BTreeMap::new(), given: 0 };
        let mut told = String::new();
        while let Some(node) = work.node.upgrade() {
            // Only print an error, and try again: an object may have changed or disappeared since the kubelet read it.
            let error = work.beat(&node).await.err().map(|error| format!("{error:#}")).unwrap_or_default();
            if !error.is_empty() && error != told {
                println!("  the kubelet tries again: {error}");
            }
            told = error;
            drop(node);
            tokio::time::sleep(BEAT).await;
        }
        Ok(())
    })
}

impl Work {
    async fn all(&self, kind: &str) -> Result<Vec<Value>> {
        Ok(self.world.try_list_in(Kind::named(kind), "").await?)
    }

    async fn beat(&mut self, node: &Mutex<Node>) -> Result<()> {
        for claim in self.all("PersistentVolumeClaim").await? {
            if claim["spec"]["volumeName"].is_null() {
                self.world.try_apply(&volume_for(&claim)).await?;
            }
        }
        let pods = self.all("Pod").await?;
        let own: Vec<&Value> = pods.iter().filter(|pod| pod["spec"]["nodeName"] == NAME).collect();
        let known = lock(node).names();
        for gone in known {
            if !own.iter().any(|pod| key(text(&pod["metadata"]["namespace"]), name(pod)) == gone) {
                lock(node).end(&gone);
                self.addresses.remove(&gone);
            }
        }
        // Continue with the next pod after an error: a pod that cannot start must not delay the other pods.
        let mut cared = Ok(());
        for pod in &own {
            cared = cared.and(self.care(node, pod).await.with_context(|| name(pod).to_owned()));
        }
        let (services, slices) = (self.all("Service").await?, self.all("EndpointSlice").await?);
        let file = |address: &str, port: u16| {
            let (of, _) = self.addresses.iter().find(|(_, it)| *it == address)?;
            Some(lock(node).pod(of).ok()?.file_of_port(port))
        };
        self.network.update(&services, &slices, file).and(cared)
    }

    /// Starts, watches or ends one pod.
    async fn care(&mut self, node: &Mutex<Node>, pod: &Value) -> Result<()> {
        let namespace = text(&pod["metadata"]["namespace"]);
        let key = key(namespace, name(pod));
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.world.client.clone(), namespace, &Kind::named("Pod").resource());
        if !pod["metadata"]["deletionTimestamp"].is_null() {
            lock(node).end(&key);
            let own = Preconditions { uid: Some(uid(pod).to_owned()), resource_version: None };
            api.delete(
                name(pod),
                &DeleteParams { preconditions: Some(own), ..DeleteParams::default().grace_period(0) },
            )
            .await?;
            return Ok(());
        }
        if pod["status"]["phase"] == "Failed" {
            return Ok(());
        }
        if !self.addresses.contains_key(&key) {
            let volumes = lock(node).folder.join("volumes").join(namespace);
            let objects = self.objects(pod, volumes).await?;
            lock(node).start(&key, &pod["spec"], &objects)?;
            self.given += 1;
            // Use addresses from the range that is reserved for network tests. Processes on the node connect to a port
            // of this machine instead, so they send nothing to these addresses.
            let [high, low] = self.given.to_be_bytes();
            self.addresses.insert(key.clone(), format!("198.18.{high}.{low}"));
        }
        let state = lock(node).state(&key)?;
        let is_ready = state == State::Ready;
        let is_told = !pod["status"]["podIP"].is_null()
            && (condition(pod, "Ready")["status"] == "True") == is_ready
            && !matches!(state, State::Ended(_));
        if !is_told {
            let status = status(pod, &state, &self.addresses[&key]);
            api.patch_status(name(pod), &PatchParams::default(), &Patch::Merge(json!({"status": status}))).await?;
        }
        Ok(())
    }

    /// Reads the objects to which a pod can refer, and requests the tokens of the pod's ServiceAccount.
    async fn objects(&self, pod: &Value, volumes: PathBuf) -> Result<Objects> {
        let namespace = text(&pod["metadata"]["namespace"]).to_owned();
        let mut all = self.world.try_list_in(Kind::named("ConfigMap"), &namespace).await?;
        all.extend(self.world.try_list_in(Kind::named("Secret"), &namespace).await?);
        let account = Account::new(&namespace, text(&pod["spec"]["serviceAccountName"]));
        let sources = list(&pod["spec"]["volumes"]).iter().flat_map(|volume| list(&volume["projected"]["sources"]));
        let mut tokens = BTreeMap::new();
        for wanted in sources.map(|source| &source["serviceAccountToken"]).filter(|token| token.is_object()) {
            let audience = text(&wanted["audience"]);
            let audiences: Vec<&str> = Some(audience).filter(|audience| !audience.is_empty()).into_iter().collect();
            let token = account.token_for(&self.world.client, &audiences).await?;
            tokens.insert(audience.to_owned(), token);
        }
        Ok(Objects { all, tokens, volumes, namespace })
    }
}

/// Returns the status of a pod.
fn status(pod: &Value, state: &State, address: &str) -> Value {
    let is_ready = *state == State::Ready;
    let word = if is_ready { "True" } else { "False" };
    let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"];
    let conditions =
        conditions.map(|of| json!({"type": of, "status": if of.ends_with("Ready") { word } else { "True" }}));
    let (phase, message) = match state {
        State::Ended(told) => ("Failed", told.as_str()),
        State::Starting(_) | State::Ready => ("Running", ""),
    };
    let containers = list(&pod["spec"]["containers"]).iter().map(|container| {
        json!({"name": container["name"], "image": container["image"], "imageID": "", "ready": is_ready,
            "restartCount": 0, "state": {"running": {}}})
    });
    json!({"phase": phase, "message": message, "podIP": address, "podIPs": [{"ip": address}], "conditions": conditions,
        "containerStatuses": containers.collect::<Vec<_>>()})
}
