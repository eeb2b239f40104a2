//! The account of one kind in one namespace: what its objects used, and the turns of the objects that wait.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{
    limits::{Admission, BudgetLimits},
    meter::Meter,
};

/// A revision still counts as waiting until this time after the latest turn of its objects.
const SHOWN_FOR: Duration = Duration::from_mins(1);
/// The time after a turn within which the object must ask for its pass. Otherwise the object loses the turn.
const MISSED: Duration = Duration::from_mins(1);
/// The operator writes an Event only about this many waiting objects of an account.
const TOLD: usize = 10;

/// The account of one kind in one namespace.
#[derive(Debug)]
pub(super) struct Account {
    fuel: Meter,
    passes: Meter,
    /// The mean fuel of the last passes. In this mean, the newest pass has a weight of one eighth.
    mean_fuel: u64,
    /// The fuel that the policies used since the last pass began.
    fuel_of_pass: u64,
    /// The turns of the waiting objects, by name.
    turns: BTreeMap<String, Instant>,
    /// The latest turn.
    last_turn: Option<Instant>,
    /// The revisions whose objects wait, each with the latest turn of its objects.
    ///
    /// The key is `None` for a policy of the process.
    waiting_for: BTreeMap<Option<Arc<str>>, Instant>,
}

impl Account {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            fuel: Meter::new(now),
            passes: Meter::new(now),
            mean_fuel: 0,
            fuel_of_pass: 0,
            turns: BTreeMap::new(),
            last_turn: None,
            waiting_for: BTreeMap::new(),
        }
    }

    /// Decides whether the pass over the object with this name may begin.
    ///
    /// If the pass must wait, gives the object a turn, or keeps its turn.
    pub(super) fn begin<'a>(
        &mut self,
        name: &str,
        answering: impl Iterator<Item = Option<&'a Arc<str>>>,
        now: Instant,
        limits: BudgetLimits,
    ) -> Admission {
        let Some(turn) = self.turn_of(name, now, limits).filter(|turn| *turn > now) else {
            self.turns.remove(name);
            self.passes.pay(now, 1, limits.passes);
            self.passes.count(now, 1);
            // The fuel of this pass is not known yet, so update the mean with the fuel since the last pass began.
            let fuel = std::mem::take(&mut self.fuel_of_pass);
            let mean = self.mean_fuel.saturating_mul(7).saturating_add(fuel) / 8;
            self.mean_fuel = if self.mean_fuel == 0 { fuel } else { mean };
            return Admission::Begins;
        };
        let is_first = self.turns.insert(name.to_owned(), turn).is_none() && self.turns.len() <= TOLD;
        self.last_turn = self.last_turn.max(Some(turn));
        for revision in answering {
            let latest = self.waiting_for.entry(revision.cloned()).or_insert(turn);
            *latest = turn.max(*latest);
        }
        if is_first { Admission::BeginsToWait(turn - now) } else { Admission::Waits(turn - now) }
    }

    /// Returns when the object may have its pass. `None` without limits.
    fn turn_of(&mut self, name: &str, now: Instant, limits: BudgetLimits) -> Option<Instant> {
        let room = self.fuel.room_at(self.mean_fuel, limits.fuel).max(self.passes.room_at(1, limits.passes));
        if !self.has_turn(name, now) {
            self.turns.remove(name);
        }
        match self.turns.get(name).copied() {
            None if self.turns.is_empty() => room,
            None => room.max(self.last_turn.map(|last| last + self.space(limits))),
            // The turn has come, but earlier passes used more than expected, so the limits do not allow the pass yet.
            Some(turn) if turn <= now && room > Some(now) => {
                self.postpone(room?, now, limits);
                self.turns.get(name).copied()
            }
            turn => turn,
        }
    }

    /// Postpones the turns, so that the first turn is not before the time `room`. The turns keep their order.
    fn postpone(&mut self, room: Instant, now: Instant, limits: BudgetLimits) {
        self.remove_missed(now);
        let space = self.space(limits);
        let mut turns: Vec<&mut Instant> = self.turns.values_mut().collect();
        turns.sort();
        let mut earliest = room;
        for turn in turns {
            *turn = earliest.max(*turn);
            earliest = *turn + space;
            self.last_turn = self.last_turn.max(Some(*turn));
        }
    }

    pub(super) fn pay(&mut self, now: Instant, fuel: u64, limits: BudgetLimits) {
        self.fuel.pay(now, fuel, limits.fuel);
        self.fuel.count(now, fuel);
        self.fuel_of_pass = self.fuel_of_pass.saturating_add(fuel);
    }

    pub(super) fn forget(&mut self, name: &str) {
        if self.turns.remove(name).is_some() {
            self.last_turn = self.turns.values().max().copied();
            if self.turns.is_empty() {
                self.waiting_for.clear();
            }
        }
    }

    pub(super) fn has_turn(&self, name: &str, now: Instant) -> bool {
        self.turns.get(name).is_some_and(|turn| *turn + MISSED > now)
    }

    /// Returns the number of objects that wait.
    pub(super) fn waiting(&self, now: Instant) -> usize {
        self.turns.values().filter(|turn| **turn + MISSED > now).count()
    }

    /// Returns the revisions whose objects wait, or waited a short time ago.
    pub(super) fn waiting_for(&self, now: Instant) -> impl Iterator<Item = &Option<Arc<str>>> {
        let waits = move |(_, turn): &(_, &Instant)| **turn + SHOWN_FOR > now;
        self.waiting_for.iter().filter(waits).map(|(revision, _)| revision)
    }

    pub(super) fn fuel_in_last_minute(&self, now: Instant) -> u64 {
        self.fuel.in_last_minute(now)
    }

    pub(super) fn passes_in_last_minute(&self, now: Instant) -> u64 {
        self.passes.in_last_minute(now)
    }

    /// Removes missed turns, and revisions that no longer count as waiting. Returns whether the account is unused.
    pub(super) fn is_unused(&mut self, now: Instant) -> bool {
        self.remove_missed(now);
        self.waiting_for.retain(|_, turn| *turn + SHOWN_FOR > now);
        self.turns.is_empty() && self.fuel.is_unused(now) && self.passes.is_unused(now)
    }

    fn remove_missed(&mut self, now: Instant) {
        self.turns.retain(|_, turn| *turn + MISSED > now);
    }

    /// Returns the time between two turns.
    fn space(&self, limits: BudgetLimits) -> Duration {
        Meter::time_of(self.mean_fuel, limits.fuel).max(Meter::time_of(1, limits.passes))
    }
}
