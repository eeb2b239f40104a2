//! All state that a request can read or change, behind one lock.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use fastrand::Rng;
use serde_json::Value;

use crate::{
    catalogue::Catalogue,
    kinds::Addresses,
    storage::{Key, Store},
};

/// The minor version of the Kubernetes release whose schemas the cluster uses.
const MINOR: u32 = 36;

/// The state of the cluster.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) catalogue: Catalogue,
    pub(crate) addresses: Addresses,
    pub(crate) snapshots: Snapshots,
    /// The minor version of Kubernetes that the cluster reports.
    pub(crate) minor: u32,
    /// The maximum number of Events. Above this number, the cluster deletes the oldest Events.
    pub(crate) events: usize,
    rng: Rng,
}

impl State {
    pub(crate) fn new(seed: u64, window: usize, events: usize) -> Self {
        Self {
            store: Store::new(window),
            catalogue: Catalogue::new(),
            addresses: Addresses::default(),
            snapshots: Snapshots::default(),
            minor: MINOR,
            events,
            rng: Rng::with_seed(seed),
        }
    }

    /// Returns a UID that depends only on the seed and the previous requests.
    pub(crate) fn uid(&mut self) -> String {
        let (high, low) = (self.rng.u64(..), self.rng.u64(..));
        let (first, second, third) = (high >> 32, high >> 16 & 0xffff, high & 0xfff);
        let (fourth, last) = (low >> 48 & 0x3fff | 0x8000, low & 0xffff_ffff_ffff);
        format!("{first:08x}-{second:04x}-4{third:03x}-{fourth:04x}-{last:012x}")
    }

    /// Returns a suffix of five characters without vowels, for generated names.
    pub(crate) fn suffix(&mut self) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..5).map(|_| char::from(ALPHABET[self.rng.usize(..ALPHABET.len())])).collect()
    }
}

/// An object in a page of a list, with its key.
pub(crate) type Listed = (Key, Arc<Value>);

/// The pages of lists that clients have not read yet.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    next: u64,
    kept: BTreeMap<u64, (u64, VecDeque<Listed>)>,
}

impl Snapshots {
    const MAX_KEPT: usize = 64;

    /// Stores `rest`, the part of a list that the client has not read yet. The list shows the state at `revision`.
    /// Removes the oldest stored lists if there are too many.
    pub(crate) fn keep(&mut self, revision: u64, rest: VecDeque<Listed>) -> u64 {
        self.next += 1;
        self.kept.insert(self.next, (revision, rest));
        while self.kept.len() > Self::MAX_KEPT {
            self.kept.pop_first();
        }
        self.next
    }

    /// Returns the stored part of a list for a continue token, or `None` if the token is unknown. The token stays
    /// valid, because a client can retry.
    pub(crate) fn get(&self, token: u64) -> Option<(u64, VecDeque<Listed>)> {
        self.kept.get(&token).cloned()
    }

    /// Removes all stored lists. A compaction calls this function.
    pub(crate) fn clear(&mut self) {
        self.kept.clear();
    }
}
