//! Stores the answers of passes, and returns a stored answer while it is valid. Equal policies, settings and inputs
//! give equal answers. So for an unchanged object, a resync does not run the policy again.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde::Serialize;

use super::{Asked, Verdict};
use crate::{
    contract::{Found, Need, Subject},
    digest::Digest,
};

/// A complete answer of a pass.
#[derive(Debug, Clone)]
pub(crate) struct MemoAnswer {
    pub(crate) fuel: u64,
    pub(crate) needs: Vec<Need>,
    pub(crate) subject: Arc<Subject>,
    /// The objects that the overlays found, the lowest overlay first.
    pub(crate) overlay_found: Arc<[Vec<Found>]>,
    pub(crate) verdict: Verdict,
    /// The number of the layer that answered last; 0 is the policy, and 1 is the lowest overlay.
    pub(crate) last_asked: usize,
    /// Whether the layers saw the object and every needed object completely. False if one of them was too large.
    pub(crate) is_whole: bool,
}

/// A stored answer, with the needs and the digest of the found objects. The answer depends on its key and on the found
/// objects.
#[derive(Debug)]
pub(crate) struct Remembered {
    /// The needs of each layer, the lowest layer first.
    pub(crate) asked: Vec<Vec<Need>>,
    /// The digest of the found objects.
    pub(crate) found: Digest,
    pub(crate) answer: MemoAnswer,
}

/// A store of answers with a limited size. All renderers of a process share one memo.
#[derive(Debug)]
pub struct Memo {
    capacity: usize,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    by_key: BTreeMap<Digest, (u64, usize, Arc<Remembered>)>,
    by_age: BTreeSet<(u64, Digest)>,
    tick: u64,
    bytes: usize,
}

impl Memo {
    /// Creates a memo with a capacity of about this many bytes. A full memo first removes the answers that no caller
    /// has used for the longest time.
    pub fn new(bytes: usize) -> Self {
        Self { capacity: bytes, entries: Mutex::default() }
    }

    /// Returns the number of answers, and their approximate size in bytes.
    pub fn size(&self) -> (usize, usize) {
        let entries = self.entries();
        (entries.by_key.len(), entries.bytes)
    }

    pub(crate) fn pass(&self, key: &Digest) -> Option<Arc<Remembered>> {
        let mut entries = self.entries();
        entries.touch(key)
    }

    pub(crate) fn keep_pass(&self, key: Digest, answer: &MemoAnswer, asked: Vec<Asked>, found: Digest) {
        let asked = asked.into_iter().map(|asked| asked.needs).collect();
        let bytes = weight(answer);
        let remembered = Remembered { asked, found, answer: answer.clone() };
        let mut entries = self.entries();
        entries.insert(key, bytes, remembered);
        while entries.bytes > self.capacity && entries.drop_oldest() {}
    }

    /// Locks the entries, ignoring poisoning.
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn touch(&mut self, key: &Digest) -> Option<Arc<Remembered>> {
        self.tick += 1;
        let (age, _, remembered) = self.by_key.get_mut(key)?;
        self.by_age.remove(&(*age, *key));
        *age = self.tick;
        self.by_age.insert((self.tick, *key));
        Some(Arc::clone(remembered))
    }

    fn insert(&mut self, key: Digest, bytes: usize, remembered: Remembered) {
        self.tick += 1;
        if let Some((age, bytes, _)) = self.by_key.insert(key, (self.tick, bytes, Arc::new(remembered))) {
            self.by_age.remove(&(age, key));
            self.bytes -= bytes;
        }
        self.by_age.insert((self.tick, key));
        self.bytes += bytes;
    }

    fn drop_oldest(&mut self) -> bool {
        let Some((_, key)) = self.by_age.pop_first() else { return false };
        if let Some((_, bytes, _)) = self.by_key.remove(&key) {
            self.bytes -= bytes;
        }
        true
    }
}

/// Returns the approximate size of an answer in bytes.
fn weight(answer: &MemoAnswer) -> usize {
    let Subject { object, found, settings, .. } = &*answer.subject;
    let planned = match &answer.verdict {
        // Parsed JSON takes several times the memory of its text.
        Verdict::Planned(planned) => written(&**planned) * 4,
        Verdict::Refused(refusal) => written(refusal),
        Verdict::Failed(_) => 0,
    };
    1024 + object.len() + settings.len() + written(found) + written(&&*answer.overlay_found) + planned
}

/// Returns the length of a value as JSON text.
fn written(it: &impl Serialize) -> usize {
    let mut length = Length(0);
    let _ = serde_json::to_writer(&mut length, it);
    length.0
}

/// Counts the bytes that a serializer writes.
struct Length(usize);

impl io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the digest of the objects that each layer found.
pub(crate) fn digest_found<'a>(found: impl Iterator<Item = &'a Vec<Found>>) -> Digest {
    Digest::of_written(&found.collect::<Vec<_>>())
}
