//! How often one child may be written: as often as its plan changes, but not for ever against somebody who undoes it at
//! once. Another operator that writes the same field, a collector that deletes what belongs to an owner that is gone and of
//! whose end the watch has not told yet: each would otherwise be answered as fast as requests travel.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

use super::memory::Mark;

/// Writes that may follow each other at once.
const BURST: u32 = 20;
/// After a burst, one write each.
const PACE: Duration = Duration::from_secs(5);

/// The writes of the children of one object.
#[derive(Debug, Clone, Default)]
pub(crate) struct Effort(BTreeMap<Mark, Spent>);

#[derive(Debug, Clone, Copy)]
struct Spent {
    writes: u32,
    since: Instant,
}

impl Effort {
    /// Takes a write of a child, or says how long it has to wait.
    pub(crate) fn spend(&mut self, child: Mark, now: Instant) -> Result<(), Duration> {
        let spent = self.0.entry(child).or_insert(Spent { writes: 0, since: now });
        while spent.writes > 0 && now.duration_since(spent.since) >= PACE {
            spent.writes -= 1;
            spent.since += PACE;
        }
        if spent.writes == 0 {
            spent.since = now;
        }
        if spent.writes >= BURST {
            return Err(PACE.saturating_sub(now.duration_since(spent.since)));
        }
        spent.writes += 1;
        Ok(())
    }

    /// Takes back a write that did not happen.
    pub(crate) fn give_back(&mut self, child: Mark) {
        if let Some(spent) = self.0.get_mut(&child) {
            spent.writes = spent.writes.saturating_sub(1);
        }
    }

    /// Forgets children of which there is nothing to remember any more.
    pub(crate) fn tidy(&mut self, now: Instant) {
        self.0.retain(|_, spent| now.duration_since(spent.since) < PACE * spent.writes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_free_and_a_fight_is_slow() {
        let mut effort = Effort::default();
        for write in 0..BURST {
            assert_eq!(effort.spend(1, Instant::now()), Ok(()), "{write}");
        }
        assert_eq!(effort.spend(1, Instant::now()), Err(PACE));
        assert_eq!(effort.spend(2, Instant::now()), Ok(()), "another child");
        tokio::time::advance(PACE).await;
        assert_eq!(effort.spend(1, Instant::now()), Ok(()));
        assert!(effort.spend(1, Instant::now()).is_err());
        tokio::time::advance(PACE * BURST).await;
        effort.tidy(Instant::now());
        assert!(effort.0.is_empty());
    }
}
