//! The flight recorder: keeps cases in bounded memory while the operator runs.
//!
//! The recorder keeps every failure, refusal, fallback and change of a plan, and some of the routine decisions. If the
//! memory is full, the oldest routine decisions go first. A case stays for at most one day.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    io::{Read as _, Write as _},
    sync::Mutex,
};

use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use jiff::{SignedDuration, Timestamp};
use kaos_policy::{contract::Reference, render::DecisionId};
use serde::Serialize;

use super::{Case, Why};
use crate::locking::lock;

/// The time for which the recorder keeps a case.
const KEPT_FOR: SignedDuration = SignedDuration::from_hours(24);
/// The maximum number of cases of one object. An object that changes all the time does not evict the cases of others.
const OF_ONE_OBJECT: usize = 32;
/// The memory of an entry in addition to its text.
const ENTRY: usize = 400;
/// The maximum size of one case as JSON, in bytes.
pub(super) const LARGEST: usize = 2 << 20;
/// The recorder keeps one of this many decisions that it would not keep otherwise.
const ONE_OF: u64 = 16;

/// Keeps cases in bounded memory.
pub(crate) struct Recorder {
    /// The size limit in bytes; 0 switches the recorder off.
    capacity: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// The entries, the oldest first.
    entries: VecDeque<Entry>,
    routine: VecDeque<Entry>,
    ids: BTreeSet<DecisionId>,
    of_object: BTreeMap<Reference, usize>,
    bytes: usize,
    dropped: u64,
}

struct Entry {
    listed: Listed,
    at: Timestamp,
    text: Box<[u8]>,
}

/// A case in the list of the recorder.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    decision: DecisionId,
    object: Reference,
    at: String,
    why: Why,
    answer: String,
}

/// The size of the recorder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RecorderSize {
    pub(crate) cases: usize,
    pub(crate) bytes: usize,
    /// The number of cases that the recorder dropped before their time, because they did not fit.
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
        Self { capacity, kept: Mutex::default() }
    }

    /// Returns whether the recorder keeps this decision.
    pub(crate) fn wants(&self, decision: DecisionId, why: Why) -> bool {
        self.capacity > 0
            && (why != Why::Routine || decision.number().is_multiple_of(ONE_OF))
            && !lock(&self.kept).ids.contains(&decision)
    }

    /// Keeps a case, and drops the cases that are too old or do not fit any more.
    pub(crate) fn keep(&self, case: &Case, now: Timestamp) {
        let written = serde_json::to_vec(case).ok().filter(|text| text.len() <= LARGEST.min(self.capacity));
        let text = written.and_then(|text| packed(&text).ok()).filter(|text| text.len() + ENTRY <= self.capacity);
        let mut kept = lock(&self.kept);
        kept.expire(now);
        let Some(text) = text else {
            kept.dropped += 1;
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
        while kept.bytes > self.capacity && kept.drop_oldest() {}
    }

    /// Returns the list of all cases, the oldest first.
    pub(crate) fn list(&self, now: Timestamp) -> Vec<Listed> {
        let mut kept = lock(&self.kept);
        kept.expire(now);
        let mut all: Vec<&Entry> = kept.entries.iter().chain(&kept.routine).collect();
        all.sort_by_key(|entry| entry.at);
        all.into_iter().map(|entry| entry.listed.clone()).collect()
    }

    /// Returns a case with its secret values; `None` if the recorder does not have it.
    pub(crate) fn case(&self, decision: DecisionId) -> Option<Case> {
        let text = {
            let kept = lock(&self.kept);
            let mut all = kept.entries.iter().chain(&kept.routine);
            all.find(|entry| entry.listed.decision == decision)?.text.clone()
        };
        let mut written = Vec::new();
        DeflateDecoder::new(&*text).read_to_end(&mut written).ok()?;
        serde_json::from_slice(&written).ok()
    }

    /// Returns the size of the recorder.
    pub(crate) fn size(&self) -> RecorderSize {
        let kept = lock(&self.kept);
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

    /// Drops the oldest routine decision, or the oldest other case. Returns whether there was one.
    fn drop_oldest(&mut self) -> bool {
        let oldest = self.routine.pop_front().or_else(|| self.entries.pop_front());
        let is_some = oldest.is_some();
        self.dropped += u64::from(is_some);
        self.forget(oldest);
        is_some
    }

    fn expire(&mut self, now: Timestamp) {
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
