//! Runs the gate in the background. While a check runs, the lifecycle continues with other revisions. A check ends
//! early when its package is deleted.
//!
//! Only one check runs at a time, because one check can take half of the memory. A package of the operator's own
//! namespace does not wait for packages of other namespaces: the operator interrupts the checks of the other packages,
//! and starts them again afterwards.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use kaos_policy::{compile::CompileError, gate::LoadError, policy::Policy};
use tokio::{
    sync::{Notify, oneshot},
    task::JoinHandle,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    background::{Over, Stand},
    gatekeeper::{Gatekeeper, Share},
};
use crate::{package::Package, processors::Processors, server::TargetServer};

pub(super) type Checked = Result<Arc<Policy>, LoadError>;

/// The running checks, and the checks that are stopping.
pub(super) struct Checks {
    gatekeeper: Gatekeeper,
    processors: Processors,
    server: TargetServer,
    home: String,
    under_way: BTreeMap<String, RunningCheck>,
    /// One token for each check that is no longer wanted and has not stopped yet. The token is cancelled when the check
    /// has stopped.
    leaving: Vec<CancellationToken>,
    ended: Arc<Notify>,
}

/// A running check. The check stops when this value is dropped.
struct RunningCheck {
    namespace: String,
    ends: CancellationToken,
    /// The token is cancelled when the check has stopped, for any reason.
    over: CancellationToken,
    checked: oneshot::Receiver<(Checked, Duration)>,
    task: JoinHandle<()>,
}

impl Drop for RunningCheck {
    fn drop(&mut self) {
        self.ends.cancel();
    }
}

impl Checks {
    /// Starts without any checks. `home` is the operator's namespace.
    pub(super) fn new(gatekeeper: Gatekeeper, processors: Processors, server: TargetServer, home: &str) -> Self {
        let (under_way, leaving, ended) = (BTreeMap::new(), Vec::new(), Arc::default());
        Self { gatekeeper, processors, server, home: home.to_owned(), under_way, leaving, ended }
    }

    /// Waits until a check stops.
    pub(super) async fn changed(&self) {
        self.ended.notified().await;
    }

    /// Returns the progress of the check of a revision.
    pub(super) fn stand(&self, revision: &str) -> Stand {
        match self.under_way.get(revision) {
            None => Stand::Open,
            Some(check) if check.over.is_cancelled() => Stand::Ended,
            Some(_) => Stand::UnderWay,
        }
    }

    /// Returns whether the check of a package of this namespace would start at once.
    pub(super) fn has_room_for(&self, namespace: &str) -> bool {
        let mut going_on = self.under_way.values().filter(|check| !check.over.is_cancelled());
        going_on.all(|check| namespace == self.home && check.namespace != self.home)
    }

    /// Starts the check of a package. Before that, interrupts all other checks.
    pub(super) fn begin(&mut self, revision: &str, namespace: &str, package: Arc<Package>) {
        let before = self.end_all();
        let (gatekeeper, share) = (self.gatekeeper.clone(), self.share(namespace));
        let (ends, over) = (share.ends.clone(), CancellationToken::new());
        let (tells, (answer, checked)) = (Over::new(over.clone(), Arc::clone(&self.ended)), oneshot::channel());
        let task = tokio::spawn(async move {
            let _tells = tells;
            // Two checks at the same time could take more memory than the container has.
            for other in before {
                other.cancelled().await;
            }
            let began = Instant::now();
            let is_over = share.ends.is_cancelled();
            let checked =
                if is_over { Err(CompileError::Unwanted.into()) } else { gatekeeper.check(&package, share).await };
            let _ = answer.send((checked, began.elapsed()));
        });
        let check = RunningCheck { namespace: namespace.to_owned(), ends, over, checked, task };
        self.under_way.insert(revision.to_owned(), check);
    }

    /// Takes the result of the check of a revision, and its duration. Returns `None` if the check has not finished.
    pub(super) async fn take(&mut self, revision: &str) -> Option<(Checked, Duration)> {
        if !matches!(self.stand(revision), Stand::Ended) {
            return None;
        }
        let mut check = self.under_way.remove(revision)?;
        if let Ok(checked) = check.checked.try_recv() {
            return Some(checked);
        }
        // If the check panicked, panic in the caller, too.
        let stopped = (&mut check.task).await.err()?;
        std::panic::resume_unwind(stopped.try_into_panic().ok()?)
    }

    /// Interrupts all running checks, checks a package at once, and waits for the result.
    pub(super) async fn now(&mut self, package: &Package, namespace: &str) -> Checked {
        for other in self.end_all() {
            other.cancelled().await;
        }
        self.gatekeeper.check(package, self.share(namespace)).await
    }

    /// Drops the policies that this process loaded while another replica held the Lease.
    pub(super) fn drop_prepared(&self) {
        self.gatekeeper.keep_prepared(&BTreeSet::new());
    }

    /// Ends the checks of revisions that are no longer wanted.
    pub(super) fn keep(&mut self, is_wanted: impl Fn(&str) -> bool) {
        self.end(|revision, _| !is_wanted(revision));
    }

    /// Interrupts the running checks. The caller can start these checks again later. Returns a token for each check
    /// that is stopping.
    fn end_all(&mut self) -> Vec<CancellationToken> {
        self.end(|_, check| !check.over.is_cancelled());
        std::mem::take(&mut self.leaving)
    }

    /// Ends the checks that `is_ended` selects. A check takes some time to stop. The caller can start an ended check
    /// again later.
    fn end(&mut self, is_ended: impl Fn(&str, &RunningCheck) -> bool) {
        let ended = self.under_way.extract_if(.., |revision, check| is_ended(revision, check));
        self.leaving.extend(ended.map(|(_, check)| check.over.clone()));
        self.leaving.retain(|over| !over.is_cancelled());
    }

    fn share(&self, namespace: &str) -> Share {
        let (processors, is_local) = (self.processors.clone(), namespace != self.home);
        Share { processors, is_local, ends: CancellationToken::new(), server: self.server.clone() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use kaos_policy::{
        compile::{Compilation, Compile, Order},
        contract::Cluster,
        engine::Engine,
        gate::{KnownServer, SizeClass},
        manifest::PolicyFile,
    };

    use super::*;
    use crate::{locking::lock, package::PolicyCode, processors::Compute};

    /// A fake compiler that records each start and end. The compilation of the component `slow` ends only when the
    /// caller no longer wants the result.
    #[derive(Clone, Default)]
    struct Compiler(Arc<Mutex<Vec<String>>>);

    impl Compile for Compiler {
        fn compile(&self, order: &Order<'_>) -> Result<Compilation, CompileError> {
            let name = String::from_utf8_lossy(order.component).into_owned();
            let told = |what: &str| lock(&self.0).push(format!("{name} {what}"));
            told("begins");
            while name == "slow" && (order.is_wanted)() {
                std::thread::sleep(Duration::from_millis(1));
            }
            if name == "slow" {
                // A compile child takes some time to stop.
                std::thread::sleep(Duration::from_millis(50));
            }
            told("ends");
            Err(if name == "slow" { CompileError::Unwanted } else { CompileError::Killed })
        }
    }

    fn package(name: &str) -> Arc<Package> {
        let (name, component) = (name.to_owned(), Some(PolicyCode::component(name.as_bytes().to_vec())));
        Arc::new(Package { name, namespace: String::new(), file: PolicyFile::default(), component })
    }

    fn checks() -> (Checks, Compiler) {
        let compiler = Compiler::default();
        let engine = Engine::new().unwrap();
        let gatekeeper = Gatekeeper::new(engine, Box::new(compiler.clone()), Cluster::default(), SizeClass::default());
        let server = TargetServer::Known(KnownServer::default());
        (Checks::new(gatekeeper, Processors::of_this_machine(Compute::Pool), server, "home"), compiler)
    }

    impl Compiler {
        async fn until(&self, happened: &[&str]) {
            let until = async {
                while *lock(&self.0) != happened {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            let within = tokio::time::timeout(Duration::from_mins(1), until).await;
            assert!(within.is_ok(), "{:?} instead of {happened:?}", lock(&self.0));
        }
    }

    #[tokio::test]
    async fn the_operators_own_are_not_held_up_and_whatever_is_ended_for_them_may_begin_again() {
        let (mut checks, compiler) = checks();
        checks.begin("tenants", "greedy", package("slow"));
        compiler.until(&["slow begins"]).await;
        assert!(matches!(checks.stand("tenants"), Stand::UnderWay));
        assert!(checks.has_room_for("home") && !checks.has_room_for("greedy") && !checks.has_room_for("other"));
        checks.begin("owners", "home", package("quick"));
        assert!(!checks.has_room_for("home") && !checks.has_room_for("greedy"));
        while !matches!(checks.stand("owners"), Stand::Ended) {
            checks.changed().await;
        }
        compiler.until(&["slow begins", "slow ends", "quick begins", "quick ends"]).await;
        assert!(checks.has_room_for("greedy") && checks.take("tenants").await.is_none());
        assert!(matches!(checks.stand("tenants"), Stand::Open));
        let (checked, _) = checks.take("owners").await.unwrap();
        assert_eq!(checked.unwrap_err(), CompileError::Killed.into());
        assert!(checks.take("owners").await.is_none(), "the result is returned only once");
    }

    #[tokio::test]
    async fn the_next_check_waits_until_an_abandoned_check_has_ended() {
        let (mut checks, compiler) = checks();
        checks.begin("one", "greedy", package("slow"));
        compiler.until(&["slow begins"]).await;
        checks.keep(|_| false);
        checks.begin("two", "other", package("quick"));
        compiler.until(&["slow begins", "slow ends", "quick begins", "quick ends"]).await;
    }

    #[tokio::test]
    async fn an_abandoned_check_is_stopped() {
        let (mut checks, compiler) = checks();
        checks.begin("one", "greedy", package("slow"));
        compiler.until(&["slow begins"]).await;
        checks.keep(|revision| revision != "one");
        compiler.until(&["slow begins", "slow ends"]).await;
        assert!(checks.has_room_for("greedy"));
        checks.begin("two", "greedy", package("slow"));
        compiler.until(&["slow begins", "slow ends", "slow begins"]).await;
        drop(checks);
        compiler.until(&["slow begins", "slow ends", "slow begins", "slow ends"]).await;
    }
}
