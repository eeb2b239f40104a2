//! The sync gate. Passes wait for the first lists of the children's types, because an unlisted child looks like a
//! missing one. The wait is limited, so that one type that cannot be listed does not block a whole kind.

use std::{collections::BTreeMap, sync::Mutex, time::Duration};

use kaos_policy::contract::ResourceType;
use tokio::time::Instant;

use crate::locking::lock;

/// Maximum wait for the passes of a kind. Shorter than the maximum cleanup time of an object.
const LONGEST_WAIT: Duration = Duration::from_mins(2);

/// When the wait began, by kind.
#[derive(Debug, Default)]
pub(crate) struct SyncGate(Mutex<BTreeMap<ResourceType, Instant>>);

impl SyncGate {
    /// Whether passes of a kind wait. `is_missing`: some type is not listed yet.
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
