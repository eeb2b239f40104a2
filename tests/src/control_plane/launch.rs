//! Starts the parts of a control plane, such as etcd and kube-apiserver.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};

use super::access::{self, User, client};
use super::parts::Parts;
use super::programs::{self, Programs};
use super::storage::Storage;
use super::{Group, audit};

/// The maximum time until a part of the control plane has started.
///
/// The time is long because a machine that also compiles is slow.
const PATIENCE: Duration = Duration::from_mins(2);
const BEAT: Duration = Duration::from_millis(50);

/// Returns a port on which no process listens. The port is below the range that the system uses for outgoing
/// connections. So no outgoing connection takes the port before a part of the cluster listens on the port, or while
/// this part restarts. This process returns each port only once.
pub fn free_port() -> Result<u16> {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut ports = std::iter::repeat_with(|| fastrand::u16(10_000..32_000)).take(1000);
    let is_free = |port: &u16| given.insert(*port) && TcpListener::bind(("127.0.0.1", *port)).is_ok();
    ports.find(is_free).context("no port is free")
}

/// Creates a folder for this run. Deletes the folders of runs that are older than a day.
fn own_folder() -> Result<PathBuf> {
    static STARTED: AtomicUsize = AtomicUsize::new(0);
    let runs = programs::provided().join("runs");
    fs::create_dir_all(&runs)?;
    for old in fs::read_dir(&runs)? {
        let old = old?;
        // Skip a folder that has just disappeared: another process, which starts at the same time, has deleted it.
        let Ok(about) = old.metadata() else { continue };
        if about.modified()?.elapsed().unwrap_or_default() > Duration::from_hours(24) {
            match fs::remove_dir_all(old.path()) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
    }
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    // The number distinguishes clusters that start in the same millisecond.
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    let folder = runs.canonicalize()?.join(format!("{}-{}-{number}", std::process::id(), since.as_millis()));
    for part in ["log", "etcd", "serving"] {
        fs::create_dir_all(folder.join(part))?;
    }
    Ok(folder)
}

/// The parts that a control plane starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Only etcd and kube-apiserver. The cluster stores objects, but has no controllers.
    Api,
    /// All parts except kwok, which simulates nodes.
    ///
    /// The cluster has no nodes: the test adds nodes, and runs their pods.
    WithoutNodes,
    /// All parts. The cluster schedules pods, and the pods become ready.
    Full,
}

/// A cluster after its start.
pub(super) struct Launched {
    pub(super) folder: PathBuf,
    pub(super) url: String,
    pub(super) storage: Storage,
    pub(super) programs: Programs,
    pub(super) parts: Parts,
    pub(super) group: Group,
}

struct Launcher {
    folder: PathBuf,
    programs: Programs,
    group: Group,
    parts: Parts,
}

impl Launcher {
    fn spawn(&mut self, name: &'static str, flags: Vec<String>) -> Result<()> {
        let program = self.programs.get(name)?;
        self.parts.start(&self.group, &self.folder, name, program, flags)
    }

    fn at(&self, file: &str) -> String {
        self.folder.join(file).display().to_string()
    }

    /// Calls `ask` repeatedly until `ask` returns a value. Fails if a part of the cluster ends, or if `ask` returns no
    /// value within [`PATIENCE`].
    async fn until<T>(&mut self, what: &str, ask: impl AsyncFn() -> Option<T>) -> Result<T> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(answer) = ask().await {
                return Ok(answer);
            }
            self.parts.check()?;
            if Instant::now() > deadline {
                bail!("gave up: {what}; logs are in {folder}", folder = self.folder.join("log").display());
            }
            tokio::time::sleep(BEAT).await;
        }
    }

    fn storage(&mut self) -> Result<Storage> {
        let storage = Storage::new(format!("127.0.0.1:{}", free_port()?));
        let url = storage.url();
        let peers = format!("http://127.0.0.1:{}", free_port()?);
        let flags = [
            "--name=test".to_owned(),
            format!("--data-dir={}", self.at("etcd")),
            format!("--listen-client-urls={url}"),
            format!("--advertise-client-urls={url}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=test={peers}"),
            // No test reads the data after a crash of the machine, so etcd need not flush the data to the disk.
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
        ];
        self.spawn("etcd", flags.into())?;
        Ok(storage)
    }

    fn server(&mut self, storage: &Storage) -> Result<String> {
        let port = free_port()?;
        fs::write(self.folder.join("audit-policy.json"), audit::POLICY)?;
        let key = self.at("service-accounts.key");
        let flags = [
            format!("--etcd-servers={}", storage.url()),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            "--endpoint-reconciler-type=none".to_owned(),
            format!("--cert-dir={}", self.at("serving")),
            format!("--token-auth-file={}", self.at("tokens.csv")),
            "--authorization-mode=RBAC".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", self.at("service-accounts.pub")),
            format!("--service-account-signing-key-file={key}"),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement,PodSecurity".to_owned(),
            // Without this flag, new nodes would not be ready at first.
            "--disable-admission-plugins=TaintNodesByCondition".to_owned(),
            format!("--audit-policy-file={}", self.at("audit-policy.json")),
            format!("--audit-log-path={}", self.at("log/audit.log")),
            // With this flag, the API server does not start a second log file.
            "--audit-log-maxsize=100000".to_owned(),
            // In blocking mode, the log contains a request before the API server answers it.
            "--audit-log-mode=blocking".to_owned(),
        ];
        self.spawn("kube-apiserver", flags.into())?;
        Ok(format!("https://127.0.0.1:{port}"))
    }

    fn controllers(&mut self, extent: Extent) -> Result<()> {
        let kubeconfig = |user: User| access::path(&self.folder, user.name()).display().to_string();
        let (manager, scheduler) = (kubeconfig(User::ControllerManager), kubeconfig(User::Scheduler));
        let manager = [
            format!("--kubeconfig={manager}"),
            "--secure-port=0".to_owned(),
            "--leader-elect=false".to_owned(),
            "--use-service-account-credentials".to_owned(),
            format!("--service-account-private-key-file={}", self.at("service-accounts.key")),
            format!("--root-ca-file={}", self.at("serving/apiserver.crt")),
            "--concurrent-gc-syncs=10".to_owned(),
        ];
        // Do not treat nodes without heartbeats as lost, because nodes that a test adds send none.
        let heartbeats = (extent == Extent::WithoutNodes).then(|| "--node-monitor-grace-period=24h".to_owned());
        self.spawn("kube-controller-manager", manager.into_iter().chain(heartbeats).collect())?;
        let scheduler =
            [format!("--kubeconfig={scheduler}"), "--secure-port=0".to_owned(), "--leader-elect=false".to_owned()];
        self.spawn("kube-scheduler", scheduler.into())
    }

    fn nodes(&mut self) -> Result<()> {
        let mut nodes = vec![
            format!("--kubeconfig={}", access::path(&self.folder, User::Nodes.name()).display()),
            "--manage-all-nodes=true".to_owned(),
            "--node-ip=127.0.0.1".to_owned(),
            // Make kwok renew the leases of its nodes: without renewed leases, the cluster would treat the nodes as
            // lost after a minute.
            "--node-lease-duration-seconds=40".to_owned(),
            format!("--server-address=127.0.0.1:{}", free_port()?),
        ];
        nodes.extend(programs::stages()?.iter().map(|stage| format!("--config={}", stage.display())));
        self.spawn("kwok", nodes)
    }

    /// Starts the controllers and the scheduler.
    async fn govern(&mut self, client: &Client, extent: Extent) -> Result<()> {
        self.controllers(extent)?;
        let accounts = api(client, "", "ServiceAccount", Some("default"));
        self.until("waited for the controllers", async || accounts.get_opt("default").await.ok().flatten()).await?;
        Ok(())
    }

    /// Creates nodes whose pods kwok simulates.
    async fn furnish(&mut self, client: &Client) -> Result<()> {
        self.nodes()?;
        for number in 0..2 {
            create_node(client, &format!("node-{number}")).await?;
        }
        let nodes = api(client, "", "Node", None);
        self.until("waited for the nodes", async || {
            let nodes = nodes.list(&kube::api::ListParams::default()).await.ok()?;
            nodes.items.iter().all(|node| is_ready(&node.data["status"])).then_some(())
        })
        .await?;
        Ok(())
    }
}

/// Starts a cluster. The folder `keys` contains the key for service account tokens.
pub(super) async fn start(extent: Extent, keys: Option<&Path>) -> Result<Launched> {
    let folder = own_folder()?;
    let group = Group::new(&folder.join("etcd"))?;
    let mut launcher = Launcher { programs: Programs::find(), group, parts: Parts::default(), folder };
    access::credentials(&launcher.folder, keys)?;
    let storage = launcher.storage()?;
    let url = launcher.server(&storage)?;
    for user in User::ALL {
        access::write(&launcher.folder, &url, user.name(), &user.token())?;
    }
    let admin = access::path(&launcher.folder, User::Admin.name());
    let client = launcher
        .until("waited for the API server", async || {
            // Create a new client for each try, because a client reads the file of the server's certificate only once.
            // If the server is still writing the file, the client can get an incomplete certificate, and then never
            // trusts the server.
            let client = client(&admin).await.ok()?;
            let asked = client.request_text(http::Request::get("/readyz").body(Vec::new()).ok()?).await;
            asked.ok().map(|_| client)
        })
        .await?;
    if extent != Extent::Api {
        launcher.govern(&client, extent).await?;
    }
    if extent == Extent::Full {
        launcher.furnish(&client).await?;
    }
    let Launcher { folder, programs, group, parts } = launcher;
    Ok(Launched { folder, url, storage, programs, parts, group })
}

fn is_ready(status: &Value) -> bool {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn api(client: &Client, group: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// Creates a node that has room for all pods.
pub async fn create_node(client: &Client, name: &str) -> Result<()> {
    let room = json!({"cpu": "64", "memory": "512Gi", "pods": "5000"});
    let nodes = api(client, "", "Node", None);
    let params = PatchParams::apply("control-plane").force();
    let node = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}});
    nodes.patch(name, &params, &Patch::Apply(&node)).await.with_context(|| name.to_owned())?;
    let status = json!({"apiVersion": "v1", "kind": "Node", "status": {"allocatable": room, "capacity": room}});
    nodes.patch_status(name, &params, &Patch::Apply(&status)).await.with_context(|| name.to_owned())?;
    Ok(())
}
