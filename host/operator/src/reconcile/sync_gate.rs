//! The sync gate. Passes wait for the first lists of the children's types, because an unlisted child looks like a
//! missing one. The wait is limited, so that one type that cannot be listed does not block a whole kind.

use std::{collections::BTreeMap, sync::Mutex, time::Duration};

use kaos_policy::contract::ResourceType;
use tokio::time::Instant;

use crate::locking::lock;

/// Maximum wait for the passes of a kind. Shorter than the maximum cleanup time of an object.
const PATIENCE: Duration = Duration::from_mins(2);

/// When the wait began, by kind.
#[derive(Debug, Default)]
pub(crate) struct HeldBack(Mutex<BTreeMap<ResourceType, Instant>>);

impl HeldBack {
    /// Whether passes of a kind wait. `is_missing`: some type is not listed yet.
    pub(crate) fn keeps_back(&self, of: &ResourceType, is_missing: bool) -> bool {
        let mut since = lock(&self.0);
        if !is_missing {
            since.remove(of);
            return false;
        }
        since.entry(of.clone()).or_insert_with(Instant::now).elapsed() < PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_type_that_is_never_listed_keeps_nobody_back_for_good() {
        let (held_back, of) = (HeldBack::default(), ResourceType::new("x.io/v1", "Widget"));
        assert!(held_back.keeps_back(&of, true));
        tokio::time::sleep(PATIENCE / 2).await;
        assert!(held_back.keeps_back(&of, true));
        tokio::time::sleep(PATIENCE / 2).await;
        assert!(!held_back.keeps_back(&of, true), "its time is over");
        assert!(!held_back.keeps_back(&of, false), "it is listed");
        assert!(held_back.keeps_back(&of, true), "and then another is not");
    }
}
