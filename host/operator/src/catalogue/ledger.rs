//! Who is served by which revision, and on whom one failed: what tells whether a revision is good.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use tokio::sync::Notify;

use crate::{locking::lock, watch::ObjectKey};

/// Objects that a revision has to fail on before it is put aside, unless there are fewer.
const SEVERAL: usize = 3;

/// What passes report. Objects that nothing but the process's own policies answers for do not appear.
#[derive(Debug, Default)]
pub struct Ledger {
    books: Mutex<BTreeMap<Arc<str>, Book>>,
    choosing: Mutex<BTreeSet<ObjectKey>>,
    changed: Notify,
}

/// What is known of one revision.
#[derive(Debug, Clone, Default)]
pub struct Book {
    /// Objects that it answers for.
    pub serving: BTreeSet<ObjectKey>,
    /// Objects that it failed on and that what came before it answers for, with how it failed.
    pub failing: BTreeMap<ObjectKey, String>,
    /// Objects that it leaves to what came before it and that do not speak against it: it refused them, or nothing serves
    /// them.
    pub held: BTreeSet<ObjectKey>,
}

/// A revision that an object goes without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Without {
    /// Which.
    pub revision: Arc<str>,
    /// Why.
    pub how: String,
    /// Whether that speaks against the revision.
    pub counts: bool,
}

impl Book {
    /// Why the revision is to be put aside, if that is so: it failed on several objects of more than one namespace, or
    /// on all that there are, and what served before it serves those well. `all` are the objects that it is there for; none
    /// where objects choose it, so that nobody revokes it with one.
    pub fn verdict(&self, all: &[ObjectKey]) -> Option<String> {
        let (key, how) = self.failing.first_key_value()?;
        let namespaces: BTreeSet<&str> = self.failing.keys().map(|key| key.namespace.as_str()).collect();
        let many = self.failing.len() >= SEVERAL && namespaces.len() > 1;
        // Nor may one that chooses nothing, where all others chose it.
        let serves = !self.serving.is_empty();
        let everywhere = !serves && !all.is_empty() && all.iter().all(|key| self.failing.contains_key(key));
        (many || everywhere).then(|| {
            let count = self.failing.len();
            let objects = if count == 1 { "object" } else { "objects" };
            format!("it failed on {count} {objects} that what came before it serves well, first {key}: {how}")
        })
    }

    fn knows(&self, key: &ObjectKey) -> bool {
        self.serving.contains(key) || self.failing.contains_key(key) || self.held.contains(key)
    }
}

impl Ledger {
    /// An object is answered for by these revisions, and goes without those.
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
        }
        for revision in by {
            changed |= books.entry(Arc::clone(revision)).or_default().serving.insert(key.clone());
        }
        for Without { revision, how, counts } in without {
            let book = books.entry(Arc::clone(revision)).or_default();
            changed |= if *counts {
                book.failing.insert(key.clone(), how.clone()).as_ref() != Some(how)
            } else {
                book.held.insert(key.clone())
            };
        }
        drop(books);
        if changed {
            self.changed.notify_one();
        }
    }

    /// An object chooses what answers for it, or does so no longer.
    pub fn chooses(&self, key: &ObjectKey, chooses: bool) {
        let mut choosing = lock(&self.choosing);
        let changed = if chooses { choosing.insert(key.clone()) } else { choosing.remove(key) };
        drop(choosing);
        if changed {
            self.changed.notify_one();
        }
    }

    /// Objects that choose what answers for them: what is there for all others is not there for them.
    pub fn choosing(&self) -> BTreeSet<ObjectKey> {
        lock(&self.choosing).clone()
    }

    /// An object is gone.
    pub fn gone(&self, key: &ObjectKey) {
        self.chooses(key, false);
        self.served(key, std::iter::empty(), &[]);
    }

    /// How many of these objects a revision has neither answered for nor been left by.
    pub fn outstanding(&self, revision: &str, keys: &[ObjectKey]) -> usize {
        let books = lock(&self.books);
        let Some(book) = books.get(revision) else { return keys.len() };
        keys.iter().filter(|key| !book.knows(key)).count()
    }

    /// What is known of a revision.
    pub fn book(&self, revision: &str) -> Book {
        lock(&self.books).get(revision).cloned().unwrap_or_default()
    }

    /// How many objects a revision answers for, and how many go without it.
    pub fn counts(&self, revision: &str) -> (usize, usize) {
        let books = lock(&self.books);
        books.get(revision).map_or((0, 0), |book| (book.serving.len(), book.failing.len() + book.held.len()))
    }

    /// Forgets what is known of every other revision.
    pub fn keep(&self, revisions: &BTreeSet<Arc<str>>) {
        lock(&self.books).retain(|revision, _| revisions.contains(revision));
    }

    /// Forgets on whom a revision failed: it is given another chance.
    pub fn absolve(&self, revision: &str) {
        if let Some(book) = lock(&self.books).get_mut(revision) {
            book.failing.clear();
            book.held.clear();
        }
    }

    /// Waits until something was reported that was not known.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}
