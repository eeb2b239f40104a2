//! Lets a test hold the policy while it computes a plan under certain settings.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use serde_json::Value;

/// The policy can be held only under settings with this port.
pub const PORT: u16 = 4999;

/// The longest time that the policy is held, so that a failed test ends. It is longer than every other wait of a test.
const LIMIT: Duration = Duration::from_mins(10);

static IS_HELD: AtomicBool = AtomicBool::new(false);
static IS_MET: AtomicBool = AtomicBool::new(false);

/// Holds the policy until it is dropped. One test of a process can use it.
#[derive(Debug)]
pub struct Hold {
    is_met: &'static AtomicBool,
}

impl Hold {
    /// Holds the policy from now on.
    #[must_use]
    pub fn begin() -> Self {
        IS_HELD.store(true, Ordering::SeqCst);
        Self { is_met: &IS_MET }
    }

    /// Returns whether the policy was held.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.is_met.load(Ordering::SeqCst)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        IS_HELD.store(false, Ordering::SeqCst);
    }
}

/// Waits while the policy is held under these settings.
pub(super) fn wait_for(settings: &str) {
    let settings: Value = serde_json::from_str(settings).unwrap_or_default();
    let began = Instant::now();
    while settings["port"] == PORT && IS_HELD.load(Ordering::SeqCst) && began.elapsed() < LIMIT {
        IS_MET.store(true, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(1));
    }
}
