//! A real Kubernetes on loopback: etcd, kube-apiserver, kube-controller-manager and kube-scheduler. kwok simulates the
//! nodes.
//!
//! `tests/control-plane/provision` provides the programs. Each [`ControlPlane`] is a new cluster on free ports. The
//! cluster has RBAC, an audit log, `PodSecurity` and `OwnerReferencesPermissionEnforcement`. The cluster ends when its
//! [`ControlPlane`] is dropped, or when the process that started the cluster ends for any reason. A guard process
//! detects that the starting process has ended, and kills the cluster's processes.
//!
//! | module | contents |
//! |---|---|
//! | [`programs`] | finds the programs |
//! | [`group`] | ends a group of processes together with this process |
//! | [`access`] | tokens, users, kubeconfigs |
//! | [`files`] | writes files while other processes read them |
//! | [`launch`], `parts` | start the parts with their flags, kill them and restart them |
//! | [`storage`] | queries etcd directly |
//! | [`chart`] | installs the chart without Helm |
//! | [`audit`] | reads which user sent which request |
//! | [`tools`] | runs `kubectl`, `helm` and the operator's own commands |
//! | [`process`] | runs an operator in a separate process |
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

use anyhow::{Result, anyhow};
use kube::Client;

pub use access::{User, client};
pub use audit::Audit;
pub use group::Group;
pub use launch::{Extent, create_node};
pub use pod::Pod;
pub use process::Process;
pub use tools::Ran;

use launch::Launched;
use programs::Programs;
use storage::Storage;

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

    /// Starts a cluster with the parts that `extent` names.
    pub fn of(extent: Extent) -> Result<Self> {
        Self::launched(extent, None)
    }

    /// Starts a cluster that signs service account tokens with the caller's key. In the folder `keys`, the file
    /// `service-accounts.key` contains this key, and `service-accounts.pub` contains its public half.
    pub fn signing_with(keys: &Path, extent: Extent) -> Result<Self> {
        Self::launched(extent, Some(keys.to_owned()))
    }

    fn launched(extent: Extent, keys: Option<PathBuf>) -> Result<Self> {
        // Use a separate thread, because the caller may already be inside an async runtime.
        let starting = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(launch::start(extent, keys.as_deref()))
        });
        let started: Result<Launched> = starting.join().map_err(|_| anyhow!("starting the control plane panicked"))?;
        let Launched { folder, url, storage, programs, parts, group } = started?;
        Ok(Self { folder, url, storage, programs, parts: Mutex::new(parts), group })
    }

    /// Returns the cluster that all tests of this process share. The first caller starts the cluster.
    ///
    /// # Panics
    /// If the cluster cannot start.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<ControlPlane> = OnceLock::new();
        SHARED.get_or_init(|| {
            Self::start().unwrap_or_else(|error| panic!("could not start the control plane: {error:#}"))
        })
    }

    /// Returns the folder with the cluster's kubeconfigs and logs.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the address of the API server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the path of the administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        access::path(&self.folder, User::Admin.name())
    }

    /// Writes a kubeconfig with a token. `name` is the name of the file.
    pub fn kubeconfig_for(&self, name: &str, token: &str) -> Result<PathBuf> {
        access::write(&self.folder, &self.url, name, token)
    }

    /// Returns a client with the administrator's rights.
    pub async fn client(&self) -> Result<Client> {
        client(&self.kubeconfig()).await
    }

    /// Returns the audit log.
    pub fn audit(&self) -> Audit {
        Audit::new(self.folder.join("log/audit.log"))
    }

    /// Returns the process group that ends when the cluster ends.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Returns the cluster's etcd.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Kills a part immediately, without a clean shutdown.
    pub fn kill(&self, part: &str) -> Result<()> {
        self.parts().kill(part)
    }

    /// Starts a killed part again with the same flags.
    pub fn revive(&self, part: &str) -> Result<()> {
        self.parts().revive(&self.group, part)
    }

    /// Returns the names of the cluster's own processes that are still running.
    pub fn running(&self) -> Result<Vec<&'static str>> {
        self.parts().running()
    }

    /// Returns the processor time that the cluster's own processes have used.
    pub fn processor(&self) -> Duration {
        self.parts().processor()
    }

    fn parts(&self) -> MutexGuard<'_, parts::Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
