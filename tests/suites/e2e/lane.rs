//! Clusters that tests take turns on. Most of what a test does is to wait, so some of them run side by side, each on a
//! cluster of its own.

use std::sync::{Condvar, Mutex, PoisonError};

use kaos_tests::control_plane::ControlPlane;

/// Clusters, at most. The first is the one that tests share which install nothing.
const LANES: usize = 3;

/// A cluster, for one test at a time.
pub(crate) struct Lane {
    pub(crate) cluster: &'static ControlPlane,
    /// The flags of what the test before left installed; none when it left nothing that can be relied on.
    pub(crate) installed: Option<Vec<String>>,
}

struct Pool {
    free: Vec<Lane>,
    started: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { free: Vec::new(), started: 0 });
static FREED: Condvar = Condvar::new();

impl Lane {
    /// Waits for a turn. A cluster on which this is installed already is taken before another.
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
        // It ends with the process.
        let another = || Box::leak(Box::new(ControlPlane::start().unwrap()));
        let cluster = if number == 1 { ControlPlane::shared() } else { another() };
        Self { cluster, installed: None }
    }
}

/// Makes room for another try when a cluster does not start.
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
