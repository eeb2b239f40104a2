//! An index of children by the UID of their owner.

use std::{collections::BTreeMap, sync::Arc};

use kaos_objects::ResourceType;

/// The type, namespace and name of a child.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ChildPlace {
    pub(super) of: Arc<ResourceType>,
    pub(super) namespace: Arc<str>,
    pub(super) name: Arc<str>,
}

/// A child without the operator's label. The sweep found the child, and the watch knows its metadata.
#[derive(Debug, Clone)]
pub(super) struct Stray {
    pub(super) uid: Box<str>,
    pub(super) version: u64,
    pub(super) owner: Box<str>,
}

/// All known children, grouped by the UID of their owner.
#[derive(Debug, Default)]
pub(super) struct Owners {
    children: BTreeMap<Box<str>, Vec<ChildPlace>>,
    strays: BTreeMap<ChildPlace, Stray>,
}

impl Owners {
    /// Records the owners of a child before and after a change: `before` is the owner before the change, and `after`
    /// the owner after the change.
    pub(super) fn moved(&mut self, place: &ChildPlace, before: Option<&str>, after: Option<&str>) {
        if after.is_some() {
            self.forget_stray(place);
        }
        if before == after {
            return;
        }
        if let Some(before) = before {
            self.remove(before, place);
        }
        if let Some(after) = after {
            self.insert(after, place);
        }
    }

    /// Adds a child that the sweep found.
    pub(super) fn stray(&mut self, place: ChildPlace, stray: Stray) {
        self.forget_stray(&place);
        self.insert(&stray.owner, &place);
        self.strays.insert(place, stray);
    }

    /// Forgets a child without the operator's label, because it was deleted or has the label now.
    pub(super) fn forget_stray(&mut self, place: &ChildPlace) {
        if let Some(stray) = self.strays.remove(place) {
            self.remove(&stray.owner, place);
        }
    }

    /// Returns the child with this type, namespace and name, or `None` if the sweep did not find the child.
    pub(super) fn stray_at(&self, place: &ChildPlace) -> Option<&Stray> {
        self.strays.get(place)
    }

    /// Forgets all children of a type that the sweep found.
    pub(super) fn forget_strays_of(&mut self, of: &ResourceType) {
        let places: Vec<ChildPlace> = self.strays.keys().filter(|place| *place.of == *of).cloned().collect();
        for place in places {
            self.forget_stray(&place);
        }
    }

    /// Returns the children of an owner, sorted by type, namespace and name.
    pub(super) fn of(&self, owner: &str) -> Vec<ChildPlace> {
        let mut places = self.children.get(owner).cloned().unwrap_or_default();
        places.sort_unstable();
        places
    }

    fn insert(&mut self, owner: &str, place: &ChildPlace) {
        let places = self.children.entry(owner.into()).or_default();
        if !places.contains(place) {
            places.push(place.clone());
        }
    }

    fn remove(&mut self, owner: &str, place: &ChildPlace) {
        if let Some(places) = self.children.get_mut(owner) {
            places.retain(|child| child != place);
            if places.is_empty() {
                self.children.remove(owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> ChildPlace {
        ChildPlace { of: Arc::new(ResourceType::new("v1", "Service")), namespace: "t".into(), name: name.into() }
    }

    fn stray(owner: &str) -> Stray {
        Stray { uid: "s".into(), version: 1, owner: owner.into() }
    }

    #[test]
    fn children_follow_their_owners() {
        let mut owners = Owners::default();
        owners.moved(&place("b"), None, Some("one"));
        owners.moved(&place("a"), None, Some("one"));
        owners.moved(&place("a"), Some("one"), Some("one"));
        assert_eq!(owners.of("one"), [place("a"), place("b")]);
        owners.moved(&place("a"), Some("one"), Some("two"));
        owners.moved(&place("b"), Some("one"), None);
        assert!(owners.of("one").is_empty());
        assert_eq!(owners.of("two"), [place("a")]);
    }

    #[test]
    fn a_stray_that_is_taken_over_is_a_child_like_others() {
        let mut owners = Owners::default();
        owners.stray(place("a"), stray("one"));
        assert!(owners.stray_at(&place("a")).is_some());
        owners.moved(&place("a"), None, Some("one"));
        assert!(owners.stray_at(&place("a")).is_none());
        assert_eq!(owners.of("one"), [place("a")]);
        owners.stray(place("b"), stray("one"));
        owners.forget_strays_of(&place("b").of);
        assert_eq!(owners.of("one"), [place("a")]);
    }
}
