//! Limits the writes of each child. Another operator may write the same field again and again. The garbage collector
//! may also delete a child because its owner is gone, while the watch still shows the owner. Without a limit, the
//! operator would repeat its write as fast as the API server answers.
//!
//! Writes of changed plans have their own, much higher limit. Normal events, such as a swap of policies, a new setting
//! or an edit, change the plan. A limit is still needed, because a plan may depend on an object that changes when the
//! children change.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

use crate::reconcile::mark::Mark;

/// The maximum number of writes in a row, and the time after which one more write is allowed.
type Rate = (u32, Duration);

/// The limit for writes of an unchanged plan.
const SAME: Rate = (20, Duration::from_secs(5));
/// The limit for writes of changed plans.
const CHANGED: Rate = (200, Duration::from_secs(1));

/// The recent writes of an object's children.
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteLimit(BTreeMap<Mark, ChildWrites>);

/// The limit that blocks a write, with the delay until the next write is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitReached {
    /// The limit for an unchanged plan.
    Same(Duration),
    /// The limit for changed plans.
    Changed(Duration),
}

#[derive(Debug, Clone, Copy)]
struct ChildWrites {
    same: Writes,
    changed: Writes,
    /// The last written plan.
    plan: Mark,
    /// The two counters and the plan before the last write, so that the caller can give its token back.
    before: Option<(Writes, Writes, Mark)>,
}

#[derive(Debug, Clone, Copy)]
struct Writes {
    count: u32,
    since: Instant,
}

impl Writes {
    fn none(now: Instant) -> Self {
        Self { count: 0, since: now }
    }

    fn spend(&mut self, (burst, pace): Rate, now: Instant) -> Result<(), Duration> {
        while self.count > 0 && now.duration_since(self.since) >= pace {
            self.count -= 1;
            self.since += pace;
        }
        if self.count == 0 {
            self.since = now;
        }
        if self.count >= burst {
            return Err(pace.saturating_sub(now.duration_since(self.since)));
        }
        self.count += 1;
        Ok(())
    }

    fn is_over(&self, (_, pace): Rate, now: Instant) -> bool {
        now.duration_since(self.since) >= pace * self.count
    }
}

impl WriteLimit {
    /// Consumes a write token for the child. If no token is free, the error contains the delay.
    pub(crate) fn spend(&mut self, child: Mark, plan: Mark, now: Instant) -> Result<(), LimitReached> {
        let none = || ChildWrites { same: Writes::none(now), changed: Writes::none(now), plan, before: None };
        let child = self.0.entry(child).or_insert_with(none);
        let before = (child.same, child.changed, child.plan);
        if child.plan == plan {
            child.same.spend(SAME, now).map_err(LimitReached::Same)?;
        } else {
            child.changed.spend(CHANGED, now).map_err(LimitReached::Changed)?;
        }
        child.plan = plan;
        child.before = Some(before);
        Ok(())
    }

    /// Gives back the token of the last write, because this write did not happen.
    pub(crate) fn give_back(&mut self, child: Mark) {
        if let Some(child) = self.0.get_mut(&child)
            && let Some(before) = child.before.take()
        {
            (child.same, child.changed, child.plan) = before;
        }
    }

    /// Forgets the children whose writes are so old that no limit counts them any more.
    pub(crate) fn tidy(&mut self, now: Instant) {
        self.0.retain(|_, child| !(child.same.is_over(SAME, now) && child.changed.is_over(CHANGED, now)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BURST: u32 = SAME.0;
    const PACE: Duration = SAME.1;

    fn spend(write_limit: &mut WriteLimit, plan: Mark) -> Result<(), LimitReached> {
        write_limit.spend(1, plan, Instant::now())
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_free_and_a_fight_is_slow() {
        let mut write_limit = WriteLimit::default();
        for write in 0..BURST {
            assert_eq!(spend(&mut write_limit, 7), Ok(()), "{write}");
        }
        assert_eq!(spend(&mut write_limit, 7), Err(LimitReached::Same(PACE)));
        assert_eq!(write_limit.spend(2, 7, Instant::now()), Ok(()), "another child");
        tokio::time::advance(PACE).await;
        assert_eq!(spend(&mut write_limit, 7), Ok(()));
        assert!(spend(&mut write_limit, 7).is_err());
        tokio::time::advance(PACE * BURST).await;
        write_limit.tidy(Instant::now());
        assert!(write_limit.0.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_fight_is_slow_also_when_each_round_takes_its_time() {
        let mut write_limit = WriteLimit::default();
        let mut writes = 0;
        for _ in 0..600 {
            write_limit.tidy(Instant::now());
            writes += u32::from(spend(&mut write_limit, 7).is_ok());
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        assert!(writes <= BURST + 12, "{writes} writes in a minute");
    }

    #[tokio::test(start_paused = true)]
    async fn a_plan_that_changes_is_no_fight_and_ends_none() {
        let mut write_limit = WriteLimit::default();
        for plan in 0..3 * u64::from(BURST) {
            write_limit.tidy(Instant::now());
            assert_eq!(spend(&mut write_limit, plan), Ok(()), "{plan}");
        }
        while spend(&mut write_limit, 100).is_ok() {}
        assert_eq!(spend(&mut write_limit, 101), Ok(()), "a change goes through");
        assert_eq!(
            spend(&mut write_limit, 101),
            Err(LimitReached::Same(PACE)),
            "and the other client keeps undoing \
            the write"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_plan_that_changes_for_ever_is_slow_too() {
        let mut write_limit = WriteLimit::default();
        let refused = (0..).find_map(|plan| spend(&mut write_limit, plan).err());
        assert_eq!(refused, Some(LimitReached::Changed(CHANGED.1)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_did_not_happen_costs_nothing() {
        let mut write_limit = WriteLimit::default();
        for _ in 0..2 * BURST {
            assert_eq!(spend(&mut write_limit, 7), Ok(()));
            write_limit.give_back(1);
        }
        while spend(&mut write_limit, 7).is_ok() {}
        assert_eq!(spend(&mut write_limit, 8), Ok(()));
        write_limit.give_back(1);
        assert_eq!(spend(&mut write_limit, 8), Ok(()), "the plan is as new as before");
        assert!(spend(&mut write_limit, 8).is_err());
    }
}
