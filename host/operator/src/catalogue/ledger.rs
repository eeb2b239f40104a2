//! Records which revision serves which object, and on which objects a revision failed. From these records, the operator
//! decides whether a revision goes into quarantine.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use tokio::sync::Notify;

use crate::{locking::lock, watch::ObjectKey};

/// A revision goes into quarantine if it fails on at least this number of objects in more than one namespace. It also
/// goes into quarantine if it fails on all its objects.
const SEVERAL: usize = 3;

/// The results of passes, for each revision of an installed policy. An object is in the ledger only if such a revision
/// answers for it, or if the operator leaves out such a revision for it.
#[derive(Debug, Default)]
pub struct Ledger {
    books: Mutex<BTreeMap<Arc<str>, Book>>,
    choosing: Mutex<BTreeSet<ObjectKey>>,
    /// Objects with a new result whose status does not show the result yet.
    unreported: Mutex<BTreeSet<ObjectKey>>,
    changed: Notify,
}

/// The results of one revision.
#[derive(Debug, Clone, Default)]
pub struct Book {
    /// Objects that the revision answers for.
    pub serving: BTreeSet<ObjectKey>,
    /// Objects on which the revision failed and for which a fallback answers, each with the failure.
    pub failing: BTreeMap<ObjectKey, String>,
    /// Objects for which the operator leaves out the revision for a reason that does not count towards a quarantine:
    /// the revision refused the object, the revision is not loaded, or no policy serves the object.
    pub held: BTreeSet<ObjectKey>,
    /// The objects of the field `held` whose reason is that the revision is not loaded.
    pub lost: BTreeSet<ObjectKey>,
}

/// A revision that the operator leaves out for an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Without {
    /// The name of the revision.
    pub revision: Arc<str>,
    /// The reason.
    pub how: String,
    /// Whether the reason counts towards a quarantine of the revision.
    pub counts: bool,
    /// Whether the reason is that the revision cannot be loaded.
    pub is_lost: bool,
}

impl Book {
    /// Returns why the revision must go into quarantine; `None` if the revision must not go into quarantine. A revision
    /// must go into quarantine if it failed on at least three objects in more than one namespace, or on all its
    /// objects. A failure of the revision counts only if a fallback serves the same object. `all` contains the objects
    /// for which the revision answers by default. If the revision answers only for objects that pin it, `all` is empty,
    /// so that one pinned object cannot cause a quarantine.
    pub fn verdict(&self, all: &[ObjectKey]) -> Option<String> {
        let (key, how) = self.failing.first_key_value()?;
        let namespaces: BTreeSet<&str> = self.failing.keys().map(|key| key.namespace.as_str()).collect();
        let many = self.failing.len() >= SEVERAL && namespaces.len() > 1;
        // `all` leaves out objects that pin a policy, so `all` may contain only one object. While the revision serves
        // objects that pin it, its failure on the one object in `all` must not cause a quarantine.
        let serves = !self.serving.is_empty();
        let everywhere = !serves && !all.is_empty() && all.iter().all(|key| self.failing.contains_key(key));
        (many || everywhere).then(|| {
            let count = self.failing.len();
            let objects = if count == 1 { "object" } else { "objects" };
            format!(
                "the policy failed on {count} {objects} that its predecessor serves without failure, first on {key}: \
                 {how}"
            )
        })
    }

    /// Returns whether the ledger has a result of the revision for the object.
    pub fn knows(&self, key: &ObjectKey) -> bool {
        self.serving.contains(key) || self.failing.contains_key(key) || self.held.contains(key)
    }
}

impl Ledger {
    /// Records that the revisions in `by` serve the object, and that the operator leaves out the revisions in `without`
    /// for the object.
    pub fn served<'a>(&self, key: &ObjectKey, by: impl Iterator<Item = &'a Arc<str>>, without: &[Without]) {
        let by: Vec<&Arc<str>> = by.collect();
        let mut books = lock(&self.books);
        if by.is_empty() && without.is_empty() && books.is_empty() {
            return;
        }
        let goes_without = |revision: &Arc<str>, counts: bool| {
            without.iter().any(|it| it.revision == *revision && it.counts == counts)
        };
        let mut changed = false;
        for (revision, book) in books.iter_mut() {
            changed |= !by.contains(&revision) && book.serving.remove(key);
            changed |= !goes_without(revision, true) && book.failing.remove(key).is_some();
            changed |= !goes_without(revision, false) && book.held.remove(key);
            let is_lost = without.iter().any(|it| it.revision == *revision && it.is_lost);
            changed |= !is_lost && book.lost.remove(key);
        }
        for revision in by {
            changed |= books.entry(Arc::clone(revision)).or_default().serving.insert(key.clone());
        }
        for Without { revision, how, counts, is_lost } in without {
            let book = books.entry(Arc::clone(revision)).or_default();
            changed |= *is_lost && book.lost.insert(key.clone());
            changed |= if *counts {
                book.failing.insert(key.clone(), how.clone()).as_ref() != Some(how)
            } else {
                book.held.insert(key.clone())
            };
        }
        if changed {
            lock(&self.unreported).insert(key.clone());
        }
        drop(books);
        if changed {
            self.changed.notify_one();
        }
    }

    /// Records that the status of an object shows the result of its last pass.
    pub fn reported(&self, key: &ObjectKey) {
        if lock(&self.unreported).remove(key) {
            self.changed.notify_one();
        }
    }

    /// Records that an object changed, and that its status does not show the changes yet because its pass waits.
    pub fn outdated(&self, key: &ObjectKey) {
        if !lock(&self.books).is_empty() {
            lock(&self.unreported).insert(key.clone());
        }
    }

    /// Returns for each object whether two conditions hold: a pass over the object ended with a result of the revision,
    /// and the object's status shows this result. A pass that ran while the revision was not loaded has no result of
    /// the revision.
    pub fn had_pass(&self, revision: &str, keys: &[ObjectKey]) -> Vec<bool> {
        let (books, unreported) = (lock(&self.books), lock(&self.unreported));
        let book = books.get(revision);
        let has_result = |book: &Book, key| book.knows(key) && !book.lost.contains(key);
        keys.iter().map(|key| book.is_some_and(|book| has_result(book, key)) && !unreported.contains(key)).collect()
    }

    /// Returns for each object whether its last pass ended without the revision, and the object's status shows the
    /// result.
    pub fn had_pass_without(&self, revision: &str, keys: &[ObjectKey]) -> Vec<bool> {
        let (books, unreported) = (lock(&self.books), lock(&self.unreported));
        let book = books.get(revision);
        keys.iter().map(|key| book.is_none_or(|book| !book.knows(key)) && !unreported.contains(key)).collect()
    }

    /// Records whether the object pins a policy.
    pub fn chooses(&self, key: &ObjectKey, chooses: bool) {
        let mut choosing = lock(&self.choosing);
        let changed = if chooses { choosing.insert(key.clone()) } else { choosing.remove(key) };
        drop(choosing);
        if changed {
            self.changed.notify_one();
        }
    }

    /// Returns the objects that pin a policy. A revision answers for such an object only if the object pins the
    /// revision.
    pub fn choosing(&self) -> BTreeSet<ObjectKey> {
        lock(&self.choosing).clone()
    }

    /// Forgets an object that was deleted.
    pub fn gone(&self, key: &ObjectKey) {
        self.chooses(key, false);
        self.served(key, std::iter::empty(), &[]);
        self.reported(key);
    }

    /// Returns how many of the objects in `keys` have no result for the revision yet.
    pub fn outstanding(&self, revision: &str, keys: &[ObjectKey]) -> usize {
        let books = lock(&self.books);
        let Some(book) = books.get(revision) else { return keys.len() };
        keys.iter().filter(|key| !book.knows(key)).count()
    }

    /// Returns the results of a revision.
    pub fn book(&self, revision: &str) -> Book {
        lock(&self.books).get(revision).cloned().unwrap_or_default()
    }

    /// Returns the number of objects that a revision serves, and the number of objects for which the operator leaves
    /// out the revision.
    pub fn counts(&self, revision: &str) -> (usize, usize) {
        let books = lock(&self.books);
        books.get(revision).map_or((0, 0), |book| (book.serving.len(), book.failing.len() + book.held.len()))
    }

    /// Forgets the results of all revisions that are not in `revisions`.
    pub fn keep(&self, revisions: &BTreeSet<Arc<str>>) {
        lock(&self.books).retain(|revision, _| revisions.contains(revision));
    }

    /// Forgets the failures of a revision, so that the operator tries the revision again.
    pub fn absolve(&self, revision: &str) {
        if let Some(book) = lock(&self.books).get_mut(revision) {
            book.failing.clear();
            book.held.clear();
            book.lost.clear();
        }
    }

    /// Waits for a new result.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}
