//! Lets a test block the policy of Gadgets while the policy computes a plan with certain settings.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use serde_json::Value;

/// The maximum time for which a test blocks the policy. A test that works needs less time, so this limit only ends a
/// test that hangs.
const LIMIT: Duration = Duration::from_mins(10);

/// The ports in settings for which tests block the policy.
///
/// The value of a port becomes true when a pass with this port begins to wait.
static HELD: Mutex<BTreeMap<u16, bool>> = Mutex::new(BTreeMap::new());

fn held() -> MutexGuard<'static, BTreeMap<u16, bool>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Blocks the policy for settings with this port, until a test drops this value. Each test in a process needs its own
/// port.
#[derive(Debug)]
pub struct Hold {
    port: u16,
}

impl Hold {
    /// Blocks the policy for settings with this port from now on.
    #[must_use]
    pub fn at(port: u16) -> Self {
        held().insert(port, false);
        Self { port }
    }

    /// Returns whether a pass has begun to wait because of this block.
    #[must_use]
    pub fn is_met(&self) -> bool {
        held().get(&self.port) == Some(&true)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        held().remove(&self.port);
    }
}

/// Waits while a test blocks the policy for these settings.
pub(super) fn wait_for(settings: &str) {
    let settings: Value = serde_json::from_str(settings).unwrap_or_default();
    let Some(port) = settings["port"].as_u64().and_then(|port| u16::try_from(port).ok()) else { return };
    let began = Instant::now();
    let is_held = || held().get_mut(&port).map(|is_met| *is_met = true).is_some();
    while is_held() && began.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(1));
    }
}
