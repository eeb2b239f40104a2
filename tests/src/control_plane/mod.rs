//! A real Kubernetes on loopback: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and kwok for nodes.
//!
//! `tests/control-plane/provision` provides the programs. Each [`ControlPlane`] is new and listens on free ports. It
//! has RBAC, an audit log, `PodSecurity` and `OwnerReferencesPermissionEnforcement`. It ends when it is dropped, or
//! when the process that started it ends for any reason: a guard in its process group waits for that.
//!
//! | module | contents |
//! |---|---|
//! | [`programs`] | finds the programs |
//! | [`group`] | ends a group of processes together with this process |
//! | [`access`] | tokens, users, kubeconfigs |
//! | [`files`] | files that one process writes while others read them |
//! | [`launch`], `parts` | start the parts with their flags, kill them and restart them |
//! | [`storage`] | queries etcd directly |
//! | [`chart`] | installs the chart without Helm |
//! | [`audit`] | reads which user sent which request |
//! | [`tools`] | runs `kubectl`, `helm` and the operator's own commands |
//! | [`process`] | an operator in its own process |
//! | [`pod`] | reads from a Deployment how to start its process |

pub mod access;
pub mod audit;
pub mod chart;
pub mod files;
pub mod group;
pub mod launch;
mod parts;
pub mod pod;
pub mod process;
pub mod programs;
pub mod storage;
pub mod tools;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

pub use access::User;
pub use audit::Audit;
pub use group::Group;
pub use pod::Pod;
pub use process::Process;
pub use tools::Ran;

use programs::Programs;
use storage::Storage;

/// The parts of a cluster to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// etcd and kube-apiserver: objects are stored, and no controller acts on them.
    Api,
    /// All parts: pods are scheduled and become ready.
    Full,
}

/// A running cluster.
pub struct ControlPlane {
    folder: PathBuf,
    url: String,
    storage: Storage,
    programs: Programs,
    parts: Mutex<parts::Parts>,
    group: Group,
}

impl ControlPlane {
    /// Starts a full cluster, and waits until pods can be scheduled.
    pub fn start() -> Result<Self> {
        Self::of(Extent::Full)
    }

    /// Starts a cluster of the given extent.
    pub fn of(extent: Extent) -> Result<Self> {
        // Uses a separate thread because the caller may already be inside a runtime.
        let starting = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(launch::start(extent))
        });
        starting.join().map_err(|_| anyhow!("starting the control plane panicked"))?
    }

    /// The cluster that all tests of this process share. The first caller starts it.
    ///
    /// # Panics
    /// If the cluster cannot start.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<ControlPlane> = OnceLock::new();
        SHARED.get_or_init(|| Self::start().unwrap_or_else(|error| panic!("no control plane: {error:#}")))
    }

    /// The folder with the cluster's kubeconfigs and logs.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The address of the API server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        access::path(&self.folder, User::Admin.name())
    }

    /// Writes a kubeconfig with a token; `name` is the name of the file.
    pub fn kubeconfig_for(&self, name: &str, token: &str) -> Result<PathBuf> {
        access::write(&self.folder, &self.url, name, token)
    }

    /// A client with the administrator's rights.
    pub async fn client(&self) -> Result<Client> {
        client(&self.kubeconfig()).await
    }

    /// The audit log.
    pub fn audit(&self) -> Audit {
        Audit::new(self.folder.join("log/audit.log"))
    }

    /// The process group that ends with the cluster.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The cluster's etcd.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Kills a part at once, without a clean shutdown.
    pub fn kill(&self, part: &str) -> Result<()> {
        self.parts().kill(part)
    }

    /// Restarts a killed part with the same flags.
    pub fn revive(&self, part: &str) -> Result<()> {
        self.parts().revive(&self.group, part)
    }

    /// The names of the cluster's own processes that still run.
    pub fn running(&self) -> Result<Vec<&'static str>> {
        self.parts().running()
    }

    /// Processor time that the cluster's own processes have used.
    pub fn processor(&self) -> Duration {
        self.parts().processor()
    }

    fn parts(&self) -> MutexGuard<'_, parts::Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client for the user of a kubeconfig.
pub async fn client(kubeconfig: &Path) -> Result<Client> {
    let read = Kubeconfig::read_from(kubeconfig).with_context(|| kubeconfig.display().to_string())?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}
