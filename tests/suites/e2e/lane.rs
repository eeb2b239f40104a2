//! Assigns clusters to tests, one after the other. Because tests mostly wait, several tests run in parallel, each on a
//! separate cluster.

use std::sync::{Condvar, Mutex, PoisonError};

use kaos_tests::control_plane::ControlPlane;

/// The maximum number of clusters. Tests that install nothing all use the first cluster.
const LANES: usize = 3;

/// A cluster that only one test uses at a time.
pub(crate) struct Lane {
    pub(crate) cluster: &'static ControlPlane,
    /// The Helm flags of the release that the previous test left. `None` if this release is missing or changed.
    pub(crate) installed: Option<Vec<String>>,
}

struct Pool {
    free: Vec<Lane>,
    started: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { free: Vec::new(), started: 0 });
static FREED: Condvar = Condvar::new();

impl Lane {
    /// Waits for a free cluster, or starts one. Prefers a cluster that already has the wanted release.
    pub(crate) fn take(wanted: Option<&[String]>) -> Self {
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let fitting = pool.free.iter().position(|lane| lane.installed.as_deref() == wanted);
            if fitting.is_none() && pool.started < LANES {
                pool.started += 1;
                let number = pool.started;
                drop(pool);
                return Self::start(number);
            }
            let last = pool.free.len().checked_sub(1);
            if let Some(at) = fitting.or(last) {
                return pool.free.swap_remove(at);
            }
            pool = FREED.wait(pool).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn start(number: usize) -> Self {
        let _retreat = Retreat;
        // Never drop the cluster: it must run until this process ends.
        let another = || Box::leak(Box::new(ControlPlane::start().unwrap()));
        let cluster = if number == 1 { ControlPlane::shared() } else { another() };
        Self { cluster, installed: None }
    }
}

/// If a cluster fails to start, reduces the count of started clusters, so that another test can start a cluster.
struct Retreat;

impl Drop for Retreat {
    fn drop(&mut self) {
        if std::thread::panicking() {
            POOL.lock().unwrap_or_else(PoisonError::into_inner).started -= 1;
            FREED.notify_one();
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        let free = Self { cluster: self.cluster, installed: self.installed.take() };
        POOL.lock().unwrap_or_else(PoisonError::into_inner).free.push(free);
        FREED.notify_one();
    }
}
