//! A real Kubernetes on loopback: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and kwok for nodes.
//!
//! `tests/control-plane/provision` provides the programs. A [`ControlPlane`] is new each time, on free ports, with RBAC,
//! an audit log, `PodSecurity` and `OwnerReferencesPermissionEnforcement`. It ends when it is dropped, and also when the
//! process that started it ends in whatever way: a guard in its process group waits for that.
//!
//! | module | what is in it |
//! |---|---|
//! | [`programs`] | where the programs are |
//! | [`group`] | processes that end together, and with this one |
//! | [`access`] | tokens, users, kubeconfigs |
//! | [`files`] | files that some write while others read them |
//! | [`launch`], `parts` | starting the parts, with their flags; killing them, and starting them again |
//! | [`storage`] | etcd, asked by the test itself |
//! | [`chart`] | what the chart installs, without Helm |
//! | [`audit`] | who asked the API server for what |
//! | [`tools`] | running `kubectl`, `helm` and the operator's own commands |
//! | [`process`] | an operator as a process of its own |
//! | [`pod`] | what a Deployment says about its process |

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

/// How much of a cluster there is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// etcd and kube-apiserver: objects are stored, and nothing becomes of them.
    Api,
    /// All of it: pods are scheduled, and become ready.
    Full,
}

/// A cluster of its own.
pub struct ControlPlane {
    folder: PathBuf,
    url: String,
    storage: Storage,
    programs: Programs,
    parts: Mutex<parts::Parts>,
    group: Group,
}

impl ControlPlane {
    /// Starts one, and waits until pods could be scheduled.
    pub fn start() -> Result<Self> {
        Self::of(Extent::Full)
    }

    /// Starts as much of one.
    pub fn of(extent: Extent) -> Result<Self> {
        // On a thread of its own, since the caller may be in a runtime already.
        let starting = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(launch::start(extent))
        });
        starting.join().map_err(|_| anyhow!("starting the control plane panicked"))?
    }

    /// The one that all tests of this process share, started by the first that asks.
    ///
    /// # Panics
    /// If it cannot be started.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<ControlPlane> = OnceLock::new();
        SHARED.get_or_init(|| Self::start().unwrap_or_else(|error| panic!("no control plane: {error:#}")))
    }

    /// Where its files are: kubeconfigs, logs.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The address of its API server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The kubeconfig of somebody who may do everything.
    pub fn kubeconfig(&self) -> PathBuf {
        access::path(&self.folder, User::Admin.name())
    }

    /// A kubeconfig for a token; `name` is the file's.
    pub fn kubeconfig_for(&self, name: &str, token: &str) -> Result<PathBuf> {
        access::write(&self.folder, &self.url, name, token)
    }

    /// A client of somebody who may do everything.
    pub async fn client(&self) -> Result<Client> {
        client(&self.kubeconfig()).await
    }

    /// Who asked for what.
    pub fn audit(&self) -> Audit {
        Audit::new(self.folder.join("log/audit.log"))
    }

    /// The processes that end with it.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Where objects are stored.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Ends a part at once, in the middle of whatever it does.
    pub fn kill(&self, part: &str) -> Result<()> {
        self.parts().kill(part)
    }

    /// Starts a part again that was killed, as it was.
    pub fn revive(&self, part: &str) -> Result<()> {
        self.parts().revive(&self.group, part)
    }

    /// Processes of the cluster itself that still run.
    pub fn running(&self) -> Result<Vec<&'static str>> {
        self.parts().running()
    }

    /// Processor time that the processes of the cluster itself have used.
    pub fn processor(&self) -> Duration {
        self.parts().processor()
    }

    fn parts(&self) -> MutexGuard<'_, parts::Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client of whom a kubeconfig names.
pub async fn client(kubeconfig: &Path) -> Result<Client> {
    let read = Kubeconfig::read_from(kubeconfig).with_context(|| kubeconfig.display().to_string())?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}
