//! The flight recorder: keeps cases in bounded memory while the operator runs.
//!
//! The recorder keeps every failure, refusal, fallback and change of a plan, and some of the routine decisions. If the
//! memory is full, the recorder drops the oldest routine decisions first. It keeps a case for at most one day.
//!
//! No pass waits for the recorder. If many decisions come at once, for example after a swap of policies, the recorder
//! leaves out changes of plans and routine decisions before all others.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    io::{Read as _, Write as _},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use jiff::{SignedDuration, Timestamp};
use kaos_policy::{
    contract::{Reference, ResourceType},
    render::DecisionId,
};
use serde::Serialize;
use tokio::sync::Notify;

use super::{Case, Why};
use crate::{clock::Clock, locking::lock};

/// The time for which the recorder keeps a case.
const KEPT_FOR: SignedDuration = SignedDuration::from_hours(24);
/// The maximum number of cases about one object, so that an object that changes all the time does not evict the cases
/// about other objects.
const OF_ONE_OBJECT: usize = 32;
/// The memory that an entry takes in addition to its text, in bytes.
const ENTRY: usize = 400;
/// The maximum size of one case as JSON, in bytes.
pub(super) const LARGEST: usize = 2 << 20;
/// On average, the recorder keeps one in this number of routine decisions.
const ONE_OF: u64 = 16;

/// The maximum number of cases that wait for the thread that writes them.
const WAITING: usize = 32;
/// The memory that the id of a dropped case takes, in bytes.
const DROPPED_ID: usize = 96;
/// The divisor for the share of the recorder's memory that the ids of dropped cases may take.
const SHARE_OF_IDS: usize = 16;
/// The minimum interval at which the recorder checks for cases that are a day old.
const LOOK: Duration = Duration::from_secs(1);

/// Keeps cases in bounded memory.
pub(crate) struct Recorder {
    /// The size limit in bytes; 0 switches the recorder off.
    capacity: usize,
    kept: Mutex<Kept>,
    waiting: AtomicUsize,
    /// Notifies the task that drops old cases.
    added: Notify,
}

/// The permission to write one case. The case counts as waiting until this value is dropped.
pub(crate) struct Place(Arc<Recorder>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Kept {
    /// The cases that are not routine decisions, the oldest first.
    entries: VecDeque<Entry>,
    routine: VecDeque<Entry>,
    ids: BTreeSet<DecisionId>,
    /// The ids of decisions whose cases did not fit into the memory, so that the recorder does not write these cases
    /// again.
    dropped_ids: BTreeSet<DecisionId>,
    /// The decisions in `dropped_ids`, the oldest first.
    dropped_at: VecDeque<(Timestamp, DecisionId)>,
    of_object: BTreeMap<Reference, usize>,
    bytes: usize,
    dropped: u64,
}

struct Entry {
    listed: Listed,
    at: Timestamp,
    text: Box<[u8]>,
}

/// A case in the list that the recorder returns.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    decision: DecisionId,
    object: Reference,
    at: String,
    why: Why,
    answer: String,
}

/// The number and the size of the cases in the recorder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RecorderSize {
    pub(crate) cases: usize,
    pub(crate) bytes: usize,
    /// The number of cases that the recorder did not write, or dropped before they were a day old, because of one of
    /// its limits.
    pub(crate) dropped: u64,
}

impl Entry {
    fn weight(&self) -> usize {
        self.text.len() + ENTRY
    }
}

impl Recorder {
    /// Creates a recorder with a size limit in bytes. 0 switches the recorder off.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, kept: Mutex::default(), waiting: AtomicUsize::new(0), added: Notify::new() }
    }

    /// Returns whether the recorder would keep this decision and does not have it yet.
    pub(crate) fn wants(&self, decision: DecisionId, why: Why) -> bool {
        if self.capacity == 0 || (why == Why::Routine && !decision.number().is_multiple_of(ONE_OF)) {
            return false;
        }
        let kept = lock(&self.kept);
        !kept.ids.contains(&decision) && !kept.dropped_ids.contains(&decision)
    }

    /// Returns the permission to write one case, or `None` if too many cases wait. Half of the permissions are only for
    /// failures, refusals and fallbacks.
    pub(crate) fn place(self: &Arc<Self>, why: Why) -> Option<Place> {
        let most = match why {
            Why::Failure | Why::Refusal | Why::Fallback => WAITING,
            Why::Change | Why::Routine | Why::Requested => WAITING / 2,
        };
        let one_more = |waiting| (waiting < most).then_some(waiting + 1);
        if self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok() {
            return Some(Place(Arc::clone(self)));
        }
        lock(&self.kept).dropped += 1;
        None
    }

    /// Keeps a case. Drops cases that are too old, and the oldest cases if the memory is full.
    pub(crate) fn keep(&self, case: &Case, now: Timestamp) {
        let written = serde_json::to_vec(case).ok().filter(|text| text.len() <= LARGEST.min(self.capacity));
        let text = written.and_then(|text| packed(&text).ok()).filter(|text| text.len() + ENTRY <= self.capacity);
        let mut kept = lock(&self.kept);
        kept.expire(now);
        let Some(text) = text else {
            kept.dropped += 1;
            kept.remember(case.decision, now, self.capacity);
            return;
        };
        if !kept.ids.insert(case.decision) {
            return;
        }
        let listed = Listed {
            decision: case.decision,
            object: case.object.clone(),
            at: case.at.clone(),
            why: case.why,
            answer: case.answer.verdict.word(),
        };
        kept.add(Entry { listed, at: now, text });
        while kept.bytes > self.capacity {
            let Some(Listed { decision, why, .. }) = kept.drop_oldest() else { break };
            if why != Why::Routine {
                kept.remember(decision, now, self.capacity);
            }
        }
        drop(kept);
        self.added.notify_one();
    }

    /// Drops each case when it is a day old, without end.
    pub(crate) async fn drop_old(&self, clock: Clock) {
        loop {
            let oldest = lock(&self.kept).oldest();
            match oldest {
                None => self.added.notified().await,
                Some(oldest) => {
                    let left = KEPT_FOR.saturating_sub(clock.now().duration_since(oldest));
                    let left = Duration::try_from(left).unwrap_or_default();
                    tokio::time::sleep(left.max(LOOK)).await;
                    lock(&self.kept).expire(clock.now());
                }
            }
        }
    }

    /// Returns the list of the cases of these objects, the oldest first.
    pub(crate) fn list(&self, now: Timestamp, wanted: impl Fn(&Reference) -> bool) -> Vec<Listed> {
        let mut kept = lock(&self.kept);
        kept.expire(now);
        let all = kept.entries.iter().chain(&kept.routine);
        let mut all: Vec<&Entry> = all.filter(|entry| wanted(&entry.listed.object)).collect();
        all.sort_by_key(|entry| entry.at);
        all.into_iter().map(|entry| entry.listed.clone()).collect()
    }

    /// Returns the list of the cases of one object, the oldest first. Ignores the namespace of a cluster-scoped object.
    pub(crate) fn list_of(&self, now: Timestamp, (of, namespace, name): (&ResourceType, &str, &str)) -> Vec<Listed> {
        let is_it = |object: &Reference| {
            object.of().group() == of.group()
                && object.kind == of.kind
                && object.name == name
                && object.namespace.as_deref().is_none_or(|own| own == namespace)
        };
        self.list(now, is_it)
    }

    /// Returns a case with its secret values; `None` if the recorder does not have it.
    pub(crate) fn case(&self, decision: DecisionId, now: Timestamp) -> Option<Case> {
        let text = {
            let mut kept = lock(&self.kept);
            kept.expire(now);
            let mut all = kept.entries.iter().chain(&kept.routine);
            all.find(|entry| entry.listed.decision == decision)?.text.clone()
        };
        let mut written = Vec::new();
        DeflateDecoder::new(&*text).read_to_end(&mut written).ok()?;
        serde_json::from_slice(&written).ok()
    }

    /// Returns the number and the size of the kept cases, and the number of dropped cases.
    pub(crate) fn size(&self, now: Timestamp) -> RecorderSize {
        let mut kept = lock(&self.kept);
        kept.expire(now);
        RecorderSize { cases: kept.ids.len(), bytes: kept.bytes, dropped: kept.dropped }
    }
}

impl Kept {
    fn add(&mut self, entry: Entry) {
        self.bytes += entry.weight();
        let of_object = self.of_object.entry(entry.listed.object.clone()).or_default();
        *of_object += 1;
        let is_too_many = *of_object > OF_ONE_OBJECT;
        let object = entry.listed.object.clone();
        if entry.listed.why == Why::Routine {
            self.routine.push_back(entry);
        } else {
            self.entries.push_back(entry);
        }
        if is_too_many {
            let of_it = |entry: &Entry| entry.listed.object == object;
            let oldest = match self.routine.iter().position(of_it) {
                Some(at) => self.routine.remove(at),
                None => self.entries.iter().position(of_it).and_then(|at| self.entries.remove(at)),
            };
            self.dropped += 1;
            self.forget(oldest);
        }
    }

    /// Drops the oldest routine decision, or the oldest case if there is no routine decision. Returns the dropped case.
    fn drop_oldest(&mut self) -> Option<Listed> {
        let oldest = self.routine.pop_front().or_else(|| self.entries.pop_front())?;
        let listed = oldest.listed.clone();
        self.dropped += 1;
        self.forget(Some(oldest));
        Some(listed)
    }

    /// Remembers the id of a decision whose case did not fit. Forgets the oldest of these ids if there are too many.
    fn remember(&mut self, decision: DecisionId, now: Timestamp, capacity: usize) {
        if self.dropped_ids.insert(decision) {
            self.dropped_at.push_back((now, decision));
            self.bytes += DROPPED_ID;
        }
        while self.dropped_at.len() * DROPPED_ID > capacity / SHARE_OF_IDS {
            self.forget_dropped();
        }
    }

    fn forget_dropped(&mut self) {
        if let Some((_, decision)) = self.dropped_at.pop_front() {
            self.dropped_ids.remove(&decision);
            self.bytes -= DROPPED_ID;
        }
    }

    /// Returns the time of the oldest case or of the oldest decision in `dropped_at`, whichever is earlier.
    fn oldest(&self) -> Option<Timestamp> {
        let cases = [self.entries.front(), self.routine.front()].into_iter().flatten().map(|entry| entry.at);
        cases.chain(self.dropped_at.front().map(|(at, _)| *at)).min()
    }

    fn expire(&mut self, now: Timestamp) {
        while self.dropped_at.front().is_some_and(|(at, _)| now.duration_since(*at) > KEPT_FOR) {
            self.forget_dropped();
        }
        let is_old = |entry: Option<&Entry>| entry.is_some_and(|entry| now.duration_since(entry.at) > KEPT_FOR);
        while is_old(self.entries.front()) {
            let oldest = self.entries.pop_front();
            self.forget(oldest);
        }
        while is_old(self.routine.front()) {
            let oldest = self.routine.pop_front();
            self.forget(oldest);
        }
    }

    fn forget(&mut self, entry: Option<Entry>) {
        let Some(entry) = entry else { return };
        self.bytes -= entry.weight();
        self.ids.remove(&entry.listed.decision);
        if let Some(of_object) = self.of_object.get_mut(&entry.listed.object) {
            *of_object -= 1;
            if *of_object == 0 {
                self.of_object.remove(&entry.listed.object);
            }
        }
    }
}

fn packed(text: &[u8]) -> std::io::Result<Box<[u8]>> {
    let mut packer = DeflateEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(text)?;
    Ok(packer.finish()?.into_boxed_slice())
}
