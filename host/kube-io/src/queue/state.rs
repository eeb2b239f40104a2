//! The state of the queue. The functions in this module never wait.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::time::Instant;

use super::fair_queue::FairQueue;
use crate::{object_key::ObjectKey, urgency::Urgency};

/// The maximum number of fresh keys in a row while a bulk or paced key waits.
const FRESH_KEYS_IN_A_ROW: u32 = 8;

/// The answer to a caller that asks for a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The worker must start a pass for this key.
    Key(Arc<ObjectKey>),
    /// Wait until this time, or until a key is added.
    At(Option<Instant>),
    /// The worker must stop, because the queue is closed.
    Closed,
}

#[derive(Debug, Default)]
struct Entry {
    /// The urgency with which the key waits, and the time at which the key began to wait.
    queued: Option<(Urgency, Instant)>,
    /// The time at which the queue will add the key. The number distinguishes keys with the same time.
    due: Option<(Instant, u64)>,
    leased: bool,
    /// The urgency of a key that was added during its own pass.
    again: Option<Urgency>,
    /// The earliest time at which the next pass for the key can start. An event does not change this time.
    held: Option<Instant>,
    failures: u32,
}

/// All keys of the queue.
#[derive(Debug)]
pub(super) struct QueueState {
    entries: BTreeMap<Arc<ObjectKey>, Entry>,
    /// If a waiting key became more urgent, the `FairQueue` of the lower urgency still contains the key. `pop` skips
    /// the key in that `FairQueue`.
    fresh: FairQueue,
    bulk: FairQueue,
    paced: FairQueue,
    due: BTreeMap<(Instant, u64), Arc<ObjectKey>>,
    number: u64,
    depth: usize,
    leased: BTreeMap<String, usize>,
    /// Maximum number of keys of one namespace that are in work at the same time.
    share: usize,
    in_a_row: u32,
    pace: Duration,
    next_paced: Option<Instant>,
    closed: bool,
}

impl QueueState {
    pub(super) fn new(pace: Duration) -> Self {
        Self {
            entries: BTreeMap::new(),
            fresh: FairQueue::default(),
            bulk: FairQueue::default(),
            paced: FairQueue::default(),
            due: BTreeMap::new(),
            number: 0,
            depth: 0,
            leased: BTreeMap::new(),
            share: usize::MAX,
            in_a_row: 0,
            pace,
            next_paced: None,
            closed: false,
        }
    }

    pub(super) fn share(&mut self, share: usize) {
        self.share = share.max(1);
    }

    /// Returns the key and its entry. Creates the entry if the key is new.
    fn entry(&mut self, key: &ObjectKey) -> (Arc<ObjectKey>, &mut Entry) {
        let shared = self.entries.get_key_value(key).map(|(key, _)| Arc::clone(key));
        let key = shared.unwrap_or_else(|| Arc::new(key.clone()));
        (Arc::clone(&key), self.entries.entry(key).or_default())
    }

    /// Adds a key. Returns whether the queue should wake a caller that waits for a key.
    pub(super) fn add(&mut self, key: &ObjectKey, urgency: Urgency, now: Instant) -> bool {
        let (key, entry) = self.entry(key);
        if entry.leased {
            entry.again = entry.again.max(Some(urgency));
            return false;
        }
        if let Some(held) = entry.held.filter(|held| *held > now) {
            self.add_at(&key, held);
            return true;
        }
        match &mut entry.queued {
            Some((line, _)) if *line >= urgency => return false,
            Some((line, _)) => *line = urgency,
            None => {
                entry.queued = Some((urgency, now));
                self.depth += 1;
            }
        }
        match urgency {
            Urgency::Fresh => self.fresh.push(key),
            Urgency::Bulk => self.bulk.push(key),
            Urgency::Paced => self.paced.push(key),
        }
        true
    }

    /// Sets the earliest time of the next pass for a key that is in work.
    pub(super) fn hold(&mut self, key: &ObjectKey, time: Instant) {
        let (_, entry) = self.entry(key);
        entry.held = Some(time);
    }

    pub(super) fn add_at(&mut self, key: &ObjectKey, time: Instant) {
        self.number += 1;
        let number = self.number;
        let (key, entry) = self.entry(key);
        if entry.queued.is_some() || entry.due.is_some_and(|(due, _)| due <= time) {
            return;
        }
        if let Some(later) = entry.due.replace((time, number)) {
            self.due.remove(&later);
        }
        self.due.insert((time, number), key);
    }

    pub(super) fn next(&mut self, now: Instant) -> Next {
        if self.closed {
            return Next::Closed;
        }
        while let Some(first) = self.due.first_entry().filter(|first| first.key().0 <= now) {
            let key = first.remove();
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.due = None;
            }
            self.add(&key, Urgency::Fresh, now);
        }
        let is_time = self.next_paced.is_none_or(|time| time <= now);
        let turn = self.in_a_row >= FRESH_KEYS_IN_A_ROW;
        let found = if turn { self.pop_many(is_time) } else { None };
        let found = found.or_else(|| self.pop(Urgency::Fresh)).or_else(|| self.pop_many(is_time));
        let Some((key, line)) = found else {
            let due = self.due.keys().next().map(|(time, _)| *time);
            // Ignore the time `next_paced` if it has passed. Then the paced keys wait only for the end of running
            // passes, because their namespaces already have the maximum number of passes.
            let paced = self.next_paced.filter(|time| *time > now && !self.paced.is_empty());
            return Next::At(due.into_iter().chain(paced).min());
        };
        match line {
            Urgency::Fresh => self.in_a_row += 1,
            Urgency::Bulk => self.in_a_row = 0,
            Urgency::Paced => {
                self.in_a_row = 0;
                self.next_paced = (!self.pace.is_zero()).then(|| now + self.pace);
            }
        }
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.leased = true;
            entry.held = None;
            entry.queued = None;
            if let Some(due) = entry.due.take() {
                self.due.remove(&due);
            }
        }
        self.depth -= 1;
        *self.leased.entry(key.namespace.clone()).or_default() += 1;
        Next::Key(key)
    }

    /// Removes and returns a bulk key or a paced key.
    fn pop_many(&mut self, is_time: bool) -> Option<(Arc<ObjectKey>, Urgency)> {
        self.pop(Urgency::Bulk).or_else(|| if is_time { self.pop(Urgency::Paced) } else { None })
    }

    fn pop(&mut self, line: Urgency) -> Option<(Arc<ObjectKey>, Urgency)> {
        let Self { entries, leased, share, fresh, bulk, paced, .. } = self;
        let may = |namespace: &str| leased.get(namespace).is_none_or(|leased| *leased < *share);
        let counts = |key: &Arc<ObjectKey>| {
            let waits = entries.get(key).and_then(|entry| entry.queued);
            waits.is_some_and(|(waits, _)| waits == line)
        };
        let keys = match line {
            Urgency::Fresh => fresh,
            Urgency::Bulk => bulk,
            Urgency::Paced => paced,
        };
        Some((keys.pop(may, counts)?, line))
    }

    /// Ends the work on a key. Returns whether the queue should wake a caller that waits for a key.
    pub(super) fn done(&mut self, key: &Arc<ObjectKey>, now: Instant) -> bool {
        let Some(entry) = self.entries.get_mut(key) else { return false };
        entry.leased = false;
        let again = entry.again.take();
        let mut held_up = false;
        if let Some(leased) = self.leased.get_mut(&key.namespace) {
            held_up = *leased >= self.share && self.depth > 0;
            *leased -= 1;
            if *leased == 0 {
                self.leased.remove(&key.namespace);
            }
        }
        if let Some(urgency) = again {
            return self.add(key, urgency, now) || held_up;
        }
        self.tidy(key);
        held_up
    }

    pub(super) fn failed(&mut self, key: &ObjectKey) -> u32 {
        let (_, entry) = self.entry(key);
        entry.failures = entry.failures.saturating_add(1);
        entry.failures
    }

    pub(super) fn succeeded(&mut self, key: &ObjectKey) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.failures = 0;
            self.tidy(key);
        }
    }

    #[cfg(test)]
    pub(super) fn failures(&self, key: &ObjectKey) -> u32 {
        self.entries.get(key).map_or(0, |entry| entry.failures)
    }

    /// Removes the entry of a key that neither waits nor has failures.
    fn tidy(&mut self, key: &ObjectKey) {
        let Some(entry) = self.entries.get(key) else { return };
        if entry.queued.is_none() && entry.due.is_none() && !entry.leased && entry.failures == 0 {
            self.entries.remove(key);
        }
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    #[cfg(test)]
    pub(super) fn leased(&self) -> usize {
        self.leased.values().sum()
    }

    #[cfg(test)]
    pub(super) fn delayed(&self) -> usize {
        self.due.len()
    }

    pub(super) fn oldest(&self, now: Instant) -> Duration {
        let queued = |key: &Arc<ObjectKey>| self.entries.get(key)?.queued;
        // The limit on the pace makes paced keys wait on purpose. So count the age of a paced key only from the time at
        // which this limit allows the next paced key.
        let turn = |line: Urgency| self.next_paced.filter(|_| line == Urgency::Paced);
        let first = |line: Urgency, keys: &FairQueue| {
            let counts = |key: &Arc<ObjectKey>| queued(key).is_some_and(|(waits, _)| waits == line);
            let since = keys.first(counts).filter_map(|key| Some(queued(key)?.1)).min()?;
            Some(turn(line).map_or(since, |turn| turn.max(since)))
        };
        let lines = [(Urgency::Fresh, &self.fresh), (Urgency::Bulk, &self.bulk), (Urgency::Paced, &self.paced)];
        let oldest = lines.into_iter().filter_map(|(line, keys)| first(line, keys)).min();
        oldest.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }
}
