//! The connections of each object: the objects that it uses, and the objects that use it.

use std::collections::{BTreeSet, HashMap};

use crate::input::Identity;

/// The connections of all objects for which a policy answers.
#[derive(Debug, Default)]
pub(super) struct Connections {
    uses: HashMap<Identity, Vec<Identity>>,
    users: HashMap<Identity, BTreeSet<Identity>>,
    /// The objects whose connections are unknown or outdated.
    asked: BTreeSet<Identity>,
}

impl Connections {
    /// Marks the connections of an object as outdated. The object keeps its old connections until the next call of
    /// [`Self::set`].
    pub(super) fn ask(&mut self, identity: Identity) {
        self.asked.insert(identity);
    }

    /// Returns the objects whose connections are unknown or outdated.
    pub(super) fn asked(&self) -> impl Iterator<Item = &Identity> {
        self.asked.iter()
    }

    /// Records what an object uses.
    ///
    /// Returns the objects that this object used before or uses now; `None` if nothing changed.
    pub(super) fn set(&mut self, identity: &Identity, uses: Vec<Identity>) -> Option<BTreeSet<Identity>> {
        self.asked.remove(identity);
        if self.uses.get(identity).map_or(uses.is_empty(), |before| *before == uses) {
            return None;
        }
        let mut related = self.unlink(identity);
        for used in &uses {
            self.users.entry(used.clone()).or_default().insert(identity.clone());
        }
        related.extend(uses.iter().cloned());
        if !uses.is_empty() {
            self.uses.insert(identity.clone(), uses);
        }
        Some(related)
    }

    /// Forgets which objects an object uses. Returns these used objects.
    pub(super) fn forget(&mut self, identity: &Identity) -> BTreeSet<Identity> {
        self.asked.remove(identity);
        self.unlink(identity)
    }

    fn unlink(&mut self, identity: &Identity) -> BTreeSet<Identity> {
        let before: BTreeSet<Identity> = self.uses.remove(identity).into_iter().flatten().collect();
        for used in &before {
            if let Some(users) = self.users.get_mut(used) {
                users.remove(identity);
                if users.is_empty() {
                    self.users.remove(used);
                }
            }
        }
        before
    }

    /// Returns the objects that an object uses.
    pub(super) fn uses(&self, identity: &Identity) -> &[Identity] {
        self.uses.get(identity).map_or(&[], Vec::as_slice)
    }

    /// Returns the objects that use an object.
    pub(super) fn users(&self, identity: &Identity) -> impl Iterator<Item = &Identity> {
        self.users.get(identity).into_iter().flatten()
    }

    /// Returns the number of objects that use others, and the number of objects that others use.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.uses.len(), self.users.len())
    }
}
