//! The reverse index of needs: the objects that need each target. The index also contains targets that do not exist, so
//! that their creation wakes the objects.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kaos_objects::{Reference, ResourceType, Selector, Target};

use super::cached_object::CachedObject;
use crate::object_key::ObjectKey;

/// The needs of all objects.
#[derive(Debug, Default)]
pub(super) struct Needs {
    of_key: BTreeMap<Arc<ObjectKey>, Vec<Arc<Target>>>,
    by_target: BTreeMap<Arc<Target>, BTreeSet<Arc<ObjectKey>>>,
}

impl Needs {
    /// Replaces the needs of an object. Returns the targets that became needed or unneeded.
    pub(super) fn set(&mut self, key: &ObjectKey, targets: BTreeSet<Target>) -> Vec<Arc<Target>> {
        let mut changed = Vec::new();
        let known = self.of_key.get(key);
        let same = |known: &Vec<Arc<Target>>| known.iter().map(AsRef::as_ref).eq(&targets);
        if known.map_or(targets.is_empty(), same) {
            return changed;
        }
        let shared = known.and(self.of_key.get_key_value(key)).map(|(key, _)| Arc::clone(key));
        let key = shared.unwrap_or_else(|| Arc::new(key.clone()));
        let before = self.of_key.remove(&key).unwrap_or_default();
        let mut now = Vec::with_capacity(targets.len());
        for target in targets {
            let shared = self.by_target.get_key_value(&target).map(|(target, _)| Arc::clone(target));
            let new = shared.is_none();
            let target = shared.unwrap_or_else(|| Arc::new(target));
            if new {
                changed.push(Arc::clone(&target));
            }
            self.by_target.entry(Arc::clone(&target)).or_default().insert(Arc::clone(&key));
            now.push(target);
        }
        for target in before.into_iter().filter(|target| now.binary_search(target).is_err()) {
            if self.release(&target, &key) {
                changed.push(target);
            }
        }
        if !now.is_empty() {
            self.of_key.insert(key, now);
        }
        changed
    }

    fn release(&mut self, target: &Arc<Target>, key: &Arc<ObjectKey>) -> bool {
        let Some(keys) = self.by_target.get_mut(target) else { return false };
        keys.remove(key);
        let free = keys.is_empty();
        if free {
            self.by_target.remove(target);
        }
        free
    }

    /// Returns the needs of an object.
    pub(super) fn of_key(&self, key: &ObjectKey) -> impl Iterator<Item = &Target> {
        self.of_key.get(key).into_iter().flatten().map(AsRef::as_ref)
    }

    /// Returns all needed targets.
    pub(super) fn all(&self) -> impl Iterator<Item = &Target> {
        self.by_target.keys().map(AsRef::as_ref)
    }

    /// Returns whether an object is needed by name.
    pub(super) fn is_needed(&self, of: &ResourceType, namespace: &str, name: &str) -> bool {
        self.by_target.contains_key(&named(of, Some(namespace), name))
    }

    /// Returns all needed targets of a type.
    pub(super) fn of_type<'a>(&'a self, of: &'a ResourceType) -> impl Iterator<Item = &'a Target> {
        self.named(of, None).chain(self.labelled(of, None)).map(|(target, _)| target)
    }

    /// Returns the label selectors for a type and a namespace, with the objects that need them.
    pub(super) fn selectors<'a>(
        &'a self,
        of: &'a ResourceType,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Selector, &'a BTreeSet<Arc<ObjectKey>>)> {
        self.labelled(of, namespace).filter_map(|(target, keys)| match target {
            Target::Labelled(selector) => Some((selector, keys)),
            Target::Named(_) => None,
        })
    }

    /// Returns the objects that need a target.
    pub(super) fn who(&self, target: &Target) -> impl Iterator<Item = &ObjectKey> {
        self.by_target.get(target).into_iter().flatten().map(AsRef::as_ref)
    }

    /// Returns the objects that a change of another object concerns. For a cluster-scoped type, ignores the namespace
    /// of a need.
    pub(super) fn concerned(
        &self,
        of: &ResourceType,
        namespace: &str,
        name: &str,
        states: [Option<&CachedObject>; 2],
    ) -> Vec<ObjectKey> {
        let mut keys: BTreeSet<&Arc<ObjectKey>> = BTreeSet::new();
        if namespace.is_empty() {
            let by_name =
                self.named(of, None).filter(|(target, _)| matches!(target, Target::Named(r) if r.name == name));
            keys.extend(by_name.flat_map(|(_, keys)| keys));
        } else {
            keys.extend(self.by_target.get(&named(of, Some(namespace), name)).into_iter().flatten());
        }
        let place = (!namespace.is_empty()).then_some(namespace);
        for (target, who) in self.labelled(of, place) {
            let Target::Labelled(selector) = target else { continue };
            if states.into_iter().flatten().any(|item| item.carries(&selector.labels)) {
                keys.extend(who);
            }
        }
        keys.into_iter().map(|key| ObjectKey::clone(key)).collect()
    }

    fn named<'a>(
        &'a self,
        of: &'a ResourceType,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Target, &'a BTreeSet<Arc<ObjectKey>>)> {
        self.from(named(of, namespace, ""), of, namespace).take_while(|(target, _)| matches!(target, Target::Named(_)))
    }

    fn labelled<'a>(
        &'a self,
        of: &'a ResourceType,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Target, &'a BTreeSet<Arc<ObjectKey>>)> {
        let start = Selector { of: of.clone(), namespace: namespace.map(str::to_owned), labels: Vec::new() };
        self.from(Target::Labelled(start), of, namespace)
    }

    fn from<'a>(
        &'a self,
        start: Target,
        of: &'a ResourceType,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Target, &'a BTreeSet<Arc<ObjectKey>>)> {
        self.by_target.range::<Target, _>(start..).map(|(target, keys)| (target.as_ref(), keys)).take_while(
            move |(target, _)| {
                is_of(target, of) && namespace.is_none_or(|namespace| target.namespace() == Some(namespace))
            },
        )
    }
}

/// Returns whether a target has a type.
pub(super) fn is_of(target: &Target, of: &ResourceType) -> bool {
    match target {
        Target::Named(reference) => reference.api_version == of.api_version && reference.kind == of.kind,
        Target::Labelled(selector) => selector.of == *of,
    }
}

/// Creates a target that names one object.
pub(super) fn named(of: &ResourceType, namespace: Option<&str>, name: &str) -> Target {
    Target::Named(Reference {
        api_version: of.api_version.clone(),
        kind: of.kind.clone(),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::watch::cached_object::{Arrived, Extract};

    fn of() -> ResourceType {
        ResourceType::new("x.io/v1", "Gadget")
    }

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new(ResourceType::new("x.io/v1", "Widget"), "t", name)
    }

    fn labelled(value: &str) -> Target {
        let labels = vec![("a".to_owned(), value.to_owned())];
        Target::Labelled(Selector { of: of(), namespace: Some("t".to_owned()), labels })
    }

    fn item(label: &str) -> CachedObject {
        let object = json!({"metadata": {"namespace": "t", "name": "g", "uid": "u", "resourceVersion": "1", "labels": {"a": label}}});
        Arrived::new(object, &of(), Extract { labels: true, ..Extract::default() }).unwrap().item
    }

    fn names(keys: Vec<ObjectKey>) -> Vec<String> {
        keys.into_iter().map(|key| key.name).collect()
    }

    #[test]
    fn a_change_concerns_who_needs_the_object_by_name_or_by_labels_before_or_after() {
        let mut needs = Needs::default();
        needs.set(&key("by-name"), BTreeSet::from([named(&of(), Some("t"), "g")]));
        needs.set(&key("elsewhere"), BTreeSet::from([named(&of(), Some("u"), "g")]));
        needs.set(&key("before"), BTreeSet::from([labelled("1")]));
        needs.set(&key("after"), BTreeSet::from([labelled("2")]));
        needs.set(&key("never"), BTreeSet::from([labelled("3")]));
        let (before, after) = (item("1"), item("2"));
        let concerned = needs.concerned(&of(), "t", "g", [Some(&before), Some(&after)]);
        assert_eq!(names(concerned), ["after", "before", "by-name"]);
        assert_eq!(names(needs.concerned(&of(), "t", "g", [None, None])), ["by-name"]);
    }

    #[test]
    fn the_namespace_of_a_need_for_a_cluster_scoped_object_means_nothing() {
        let mut needs = Needs::default();
        needs.set(&key("a"), BTreeSet::from([named(&of(), Some("t"), "g")]));
        needs.set(&key("b"), BTreeSet::from([named(&of(), None, "g")]));
        needs.set(&key("c"), BTreeSet::from([named(&of(), None, "h")]));
        assert_eq!(names(needs.concerned(&of(), "", "g", [None, None])), ["a", "b"]);
    }

    #[test]
    fn it_says_when_something_is_needed_first_or_no_longer() {
        let mut needs = Needs::default();
        let both = BTreeSet::from([named(&of(), Some("t"), "g"), named(&of(), Some("t"), "h")]);
        assert!(!needs.set(&key("a"), both.clone()).is_empty());
        assert!(needs.set(&key("a"), both.clone()).is_empty(), "the same again");
        assert!(needs.set(&key("b"), both).is_empty(), "another key, nothing new");
        assert!(needs.set(&key("a"), BTreeSet::new()).is_empty(), "still needed by the other");
        assert!(!needs.set(&key("b"), BTreeSet::new()).is_empty());
        assert_eq!(needs.of_type(&of()).count(), 0);
        assert!(!needs.is_needed(&of(), "t", "g"));
        assert!(needs.set(&key("nobody"), BTreeSet::new()).is_empty());
    }
}
