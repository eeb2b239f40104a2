//! The waiting keys of one urgency. Each namespace has its own list of keys, and the namespaces take turns. So a
//! namespace with many keys gets at most one turn before each key of another namespace.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use crate::object_key::ObjectKey;

/// The waiting keys of one urgency, by namespace.
#[derive(Debug, Default)]
pub(super) struct FairQueue {
    waiting: BTreeMap<String, VecDeque<Arc<ObjectKey>>>,
    /// The namespaces in the order of their turns.
    turns: VecDeque<String>,
}

impl FairQueue {
    pub(super) fn push(&mut self, key: Arc<ObjectKey>) {
        if let Some(keys) = self.waiting.get_mut(&key.namespace) {
            return keys.push_back(key);
        }
        self.turns.push_back(key.namespace.clone());
        self.waiting.insert(key.namespace.clone(), VecDeque::from([key]));
    }

    /// Removes and returns the next key. Skips a namespace if the function `may` returns false for it. Drops keys for
    /// which the function `counts` returns false.
    pub(super) fn pop(
        &mut self,
        may: impl Fn(&str) -> bool,
        counts: impl Fn(&Arc<ObjectKey>) -> bool,
    ) -> Option<Arc<ObjectKey>> {
        for _ in 0..self.turns.len() {
            let namespace = self.turns.pop_front()?;
            if !may(&namespace) {
                self.turns.push_back(namespace);
                continue;
            }
            let found = self.waiting.get_mut(&namespace).and_then(|keys| {
                let at = keys.iter().position(&counts);
                keys.drain(..at.unwrap_or(keys.len()));
                keys.pop_front()
            });
            if self.waiting.get(&namespace).is_some_and(VecDeque::is_empty) {
                self.waiting.remove(&namespace);
            } else {
                self.turns.push_back(namespace);
            }
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Returns, for each namespace, the key that has waited longest. Skips keys for which `counts` is false.
    pub(super) fn first<'a>(
        &'a self,
        counts: impl Fn(&Arc<ObjectKey>) -> bool + 'a,
    ) -> impl Iterator<Item = &'a Arc<ObjectKey>> {
        self.waiting.values().filter_map(move |keys| keys.iter().find(|key| counts(key)))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
