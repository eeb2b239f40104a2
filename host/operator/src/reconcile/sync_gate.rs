//! The sync gate makes passes wait until the watch has listed the types of children, because an unlisted child looks
//! like a missing child. The wait is limited, so that a type that cannot be listed does not block all objects of a
//! kind.

use std::{collections::BTreeMap, sync::Mutex, time::Duration};

use kaos_policy::contract::ResourceType;
use tokio::time::Instant;

use crate::locking::lock;

/// The maximum wait for the passes of a kind. It is shorter than the maximum time for the cleanup of a deleted object.
const LONGEST_WAIT: Duration = Duration::from_mins(2);

/// The time at which the passes of each kind began to wait.
#[derive(Debug, Default)]
pub(crate) struct SyncGate(Mutex<BTreeMap<ResourceType, Instant>>);

impl SyncGate {
    /// Returns whether passes of a kind must wait. `is_missing` is true if the watch has not listed all types of the
    /// kind yet.
    pub(crate) fn holds(&self, of: &ResourceType, is_missing: bool) -> bool {
        let mut since = lock(&self.0);
        if !is_missing {
            since.remove(of);
            return false;
        }
        since.entry(of.clone()).or_insert_with(Instant::now).elapsed() < LONGEST_WAIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_type_that_is_never_listed_does_not_block_its_kind_for_ever() {
        let (gate, of) = (SyncGate::default(), ResourceType::new("x.io/v1", "Widget"));
        assert!(gate.holds(&of, true));
        tokio::time::sleep(LONGEST_WAIT / 2).await;
        assert!(gate.holds(&of, true));
        tokio::time::sleep(LONGEST_WAIT / 2).await;
        assert!(!gate.holds(&of, true), "the wait is over");
        assert!(!gate.holds(&of, false), "the type is listed");
        assert!(gate.holds(&of, true), "another type is not listed");
    }
}
