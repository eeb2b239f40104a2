//! Passes wait for the lists of the children's types: what was not listed yet looks as if it were not there. They wait for
//! a bounded time, since one type that cannot be listed would otherwise hold all objects of a kind up.

use std::{collections::BTreeMap, sync::Mutex, time::Duration};

use kaos_policy::contract::ResourceType;
use tokio::time::Instant;

use crate::locking::lock;

/// How long passes of a kind wait; less than cleanup may hold an object.
const PATIENCE: Duration = Duration::from_mins(2);

/// Since when passes wait, by kind.
#[derive(Debug, Default)]
pub(crate) struct HeldBack(Mutex<BTreeMap<ResourceType, Instant>>);

impl HeldBack {
    /// Whether passes of a kind wait, now that something is missing or nothing is.
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
