//! The journal of requests, for assertions such as "no writes".

use std::{collections::VecDeque, fmt, sync::Mutex};

use jiff::Timestamp;

use super::Attempt;
use crate::lock::lock;

/// A request and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The time of the answer.
    pub at: Timestamp,
    /// The request.
    pub attempt: Attempt,
    /// The status code, or 0 if the connection broke.
    pub code: u16,
    /// The revision of the store after the request.
    pub revision: u64,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Attempt { verb, group, resource, subresource, namespace, name, user, .. } = &self.attempt;
        let slash = if subresource.is_empty() { "" } else { "/" };
        let dot = if group.is_empty() { "" } else { "." };
        let (code, revision) = (self.code, self.revision);
        write!(
            f,
            "{} {resource}{dot}{group}{slash}{subresource} {namespace}/{name} by {user}: {code} at {revision}",
            verb.name()
        )
    }
}

/// The requests since the start or since the last [`clear`](Self::clear). A full journal removes the oldest requests
/// first.
#[derive(Debug)]
pub struct Journal {
    entries: Mutex<VecDeque<Entry>>,
    most: usize,
}

impl Journal {
    /// Returns an empty journal with room for `most` requests.
    pub(crate) fn new(most: usize) -> Self {
        Self { entries: Mutex::new(VecDeque::new()), most }
    }

    pub(crate) fn record(&self, entry: Entry) {
        let mut entries = lock(&self.entries);
        entries.push_back(entry);
        while entries.len() > self.most {
            entries.pop_front();
        }
    }

    /// Returns all entries.
    pub fn entries(&self) -> Vec<Entry> {
        lock(&self.entries).iter().cloned().collect()
    }

    /// Returns the number of matching entries.
    pub fn count(&self, fits: impl Fn(&Entry) -> bool) -> usize {
        lock(&self.entries).iter().filter(|entry| fits(entry)).count()
    }

    /// Returns the accepted writes, without dry runs and reviews.
    pub fn writes(&self) -> Vec<Entry> {
        let is_write = |entry: &Entry| {
            entry.attempt.verb.is_write()
                && !entry.attempt.dry_run
                && entry.attempt.group != "authorization.k8s.io"
                && (200..300).contains(&entry.code)
        };
        self.entries().into_iter().filter(is_write).collect()
    }

    /// Removes all entries.
    pub fn clear(&self) {
        lock(&self.entries).clear();
    }
}
