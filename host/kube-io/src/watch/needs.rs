//! The reverse index of needs: the objects that need each target. The index also contains targets that do not exist, so
//! that their creation wakes the objects.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kaos_objects::{Fields, Followed, Reference, ResourceType, Selector, Target};

use super::difference::Difference;
use crate::object_key::ObjectKey;

/// The objects whose policies need one target, grouped by the fields of the target that the policies read.
type Readers = BTreeMap<Arc<Fields>, BTreeSet<Arc<ObjectKey>>>;

/// A need of one object.
type Need = (Arc<Target>, Arc<Fields>);

/// The needs of all objects.
#[derive(Debug, Default)]
pub(super) struct Needs {
    of_key: BTreeMap<Arc<ObjectKey>, Vec<Need>>,
    by_target: BTreeMap<Arc<Target>, Readers>,
    /// All distinct sets of fields. Most objects of a kind read the same fields, so these objects share one set.
    fields: BTreeSet<Arc<Fields>>,
}

impl Needs {
    /// Replaces the needs of an object. Returns the targets that became needed or unneeded.
    pub(super) fn set(&mut self, key: &ObjectKey, needs: BTreeSet<Followed>) -> Vec<Arc<Target>> {
        let mut changed = Vec::new();
        let known = self.of_key.get(key);
        let same = |known: &Vec<Need>| {
            let known = known.iter().map(|(target, fields)| (&**target, &**fields));
            known.eq(needs.iter().map(|Followed { target, fields }| (target, fields)))
        };
        if known.map_or(needs.is_empty(), same) {
            return changed;
        }
        let shared = known.and(self.of_key.get_key_value(key)).map(|(key, _)| Arc::clone(key));
        let key = shared.unwrap_or_else(|| Arc::new(key.clone()));
        let before = self.of_key.remove(&key).unwrap_or_default();
        let mut now = Vec::with_capacity(needs.len());
        for Followed { target, fields } in needs {
            let shared = self.by_target.get_key_value(&target).map(|(target, _)| Arc::clone(target));
            let new = shared.is_none();
            let target = shared.unwrap_or_else(|| Arc::new(target));
            if new {
                changed.push(Arc::clone(&target));
            }
            let fields = self.shared_fields(fields);
            let readers = self.by_target.entry(Arc::clone(&target)).or_default();
            readers.entry(Arc::clone(&fields)).or_default().insert(Arc::clone(&key));
            now.push((target, fields));
        }
        for need in before {
            if now.binary_search(&need).is_err() && self.release(&need, &key) {
                changed.push(need.0);
            }
        }
        if !now.is_empty() {
            self.of_key.insert(key, now);
        }
        changed
    }

    fn shared_fields(&mut self, fields: Fields) -> Arc<Fields> {
        if let Some(shared) = self.fields.get(&fields) {
            return Arc::clone(shared);
        }
        let shared = Arc::new(fields);
        self.fields.insert(Arc::clone(&shared));
        shared
    }

    /// Removes a need of an object. Returns whether no object needs the target any more.
    fn release(&mut self, (target, fields): &Need, key: &Arc<ObjectKey>) -> bool {
        let Some(readers) = self.by_target.get_mut(target) else { return false };
        if let Some(keys) = readers.get_mut(fields) {
            keys.remove(key);
            if keys.is_empty() {
                readers.remove(fields);
            }
        }
        let free = readers.is_empty();
        if free {
            self.by_target.remove(target);
        }
        // If no other need shares these fields, two references to them are left: one in `self.fields`, and one in the
        // removed need.
        if Arc::strong_count(fields) <= 2 {
            self.fields.remove(fields);
        }
        free
    }

    /// Returns the needs of an object, with their fields, sorted.
    pub(super) fn followed(&self, key: &ObjectKey) -> impl Iterator<Item = Followed> {
        let followed = |(target, fields): &Need| Followed { target: (**target).clone(), fields: (**fields).clone() };
        self.of_key.get(key).into_iter().flatten().map(followed)
    }

    /// Returns the targets of an object's needs.
    pub(super) fn of_key(&self, key: &ObjectKey) -> impl Iterator<Item = &Target> {
        let all: BTreeSet<&Target> = self.of_key.get(key).into_iter().flatten().map(|(target, _)| &**target).collect();
        all.into_iter()
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

    /// Returns the label selectors for a type and a namespace, each with the objects that use the selector in a need.
    pub(super) fn selectors<'a>(
        &'a self,
        of: &'a ResourceType,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Selector, &'a Readers)> {
        self.labelled(of, namespace).filter_map(|(target, readers)| match target {
            Target::Labelled(selector) => Some((selector, readers)),
            Target::Named(_) => None,
        })
    }

    /// Returns the objects that need a target.
    pub(super) fn who(&self, target: &Target) -> impl Iterator<Item = &ObjectKey> {
        self.by_target.get(target).into_iter().flat_map(all_keys).map(AsRef::as_ref)
    }

    /// Returns the objects that a change of a watched object concerns. A change concerns an object if its policies read
    /// a changed field, and if the watch answers this need (`is_answered`). Ignores a need's namespace for a
    /// cluster-scoped type.
    pub(super) fn concerned(
        &self,
        of: &ResourceType,
        namespace: &str,
        name: &str,
        difference: &Difference<'_>,
        is_answered: impl Fn(&Target) -> bool,
    ) -> Vec<ObjectKey> {
        let mut keys: BTreeSet<&Arc<ObjectKey>> = BTreeSet::new();
        if namespace.is_empty() {
            let by_name =
                self.named(of, None).filter(|(target, _)| matches!(target, Target::Named(r) if r.name == name));
            keys.extend(by_name.flat_map(|(_, readers)| concerned_keys(readers, difference)));
        } else {
            let target = named(of, Some(namespace), name);
            let readers = self.by_target.get(&target).filter(|_| is_answered(&target));
            keys.extend(readers.into_iter().flat_map(|readers| concerned_keys(readers, difference)));
        }
        let place = (!namespace.is_empty()).then_some(namespace);
        for (target, readers) in self.labelled(of, place).filter(|(target, _)| is_answered(target)) {
            let Target::Labelled(selector) = target else { continue };
            let mut selected = difference.states().map(|item| item.carries(&selector.labels));
            match (selected.next(), selected.next()) {
                // The selector selects the changed object before and after the change.
                (Some(true), Some(true)) => keys.extend(concerned_keys(readers, difference)),
                (Some(true), _) | (_, Some(true)) => keys.extend(all_keys(readers)),
                _ => {}
            }
        }
        keys.into_iter().map(|key| ObjectKey::clone(key)).collect()
    }

    fn named<'a>(
        &'a self,
        of: &'a ResourceType,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Target, &'a Readers)> {
        self.from(named(of, namespace, ""), of, namespace).take_while(|(target, _)| matches!(target, Target::Named(_)))
    }

    fn labelled<'a>(
        &'a self,
        of: &'a ResourceType,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Target, &'a Readers)> {
        let start = Selector { of: of.clone(), namespace: namespace.map(str::to_owned), labels: Vec::new() };
        self.from(Target::Labelled(start), of, namespace)
    }

    fn from<'a>(
        &'a self,
        start: Target,
        of: &'a ResourceType,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a Target, &'a Readers)> {
        self.by_target.range::<Target, _>(start..).map(|(target, keys)| (target.as_ref(), keys)).take_while(
            move |(target, _)| {
                is_of(target, of) && namespace.is_none_or(|namespace| target.namespace() == Some(namespace))
            },
        )
    }
}

/// Returns all objects that need a target.
pub(super) fn all_keys(readers: &Readers) -> impl Iterator<Item = &Arc<ObjectKey>> {
    readers.values().flatten()
}

/// Returns the objects whose policies read a changed field.
pub(super) fn concerned_keys<'a>(
    readers: &'a Readers,
    difference: &Difference<'_>,
) -> impl Iterator<Item = &'a Arc<ObjectKey>> {
    readers.iter().filter(|(fields, _)| difference.is_in(fields)).flat_map(|(_, keys)| keys)
}

/// Returns whether a target has this type.
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
    use crate::watch::cached_object::{Arrived, CachedObject, Extract};

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

    fn whole(target: &Target) -> BTreeSet<Followed> {
        BTreeSet::from([target.into()])
    }

    fn reading(target: &Target, path: &str) -> BTreeSet<Followed> {
        let fields = Fields::parse(&[path.to_owned()]).unwrap();
        BTreeSet::from([Followed { target: target.clone(), fields }])
    }

    fn names(keys: Vec<ObjectKey>) -> Vec<String> {
        keys.into_iter().map(|key| key.name).collect()
    }

    #[test]
    fn a_change_concerns_who_needs_the_object_by_name_or_by_labels_before_or_after() {
        let mut needs = Needs::default();
        needs.set(&key("by-name"), whole(&named(&of(), Some("t"), "g")));
        needs.set(&key("elsewhere"), whole(&named(&of(), Some("u"), "g")));
        needs.set(&key("before"), whole(&labelled("1")));
        needs.set(&key("after"), whole(&labelled("2")));
        needs.set(&key("never"), whole(&labelled("3")));
        let (before, after) = (item("1"), item("2"));
        let concerned = needs.concerned(&of(), "t", "g", &Difference::new(Some(&before), Some(&after)), |_| true);
        assert_eq!(names(concerned), ["after", "before", "by-name"]);
        assert_eq!(names(needs.concerned(&of(), "t", "g", &Difference::unknown(), |_| true)), ["by-name"]);
    }

    #[test]
    fn the_namespace_of_a_need_for_a_cluster_scoped_object_means_nothing() {
        let mut needs = Needs::default();
        needs.set(&key("a"), whole(&named(&of(), Some("t"), "g")));
        needs.set(&key("b"), whole(&named(&of(), None, "g")));
        needs.set(&key("c"), whole(&named(&of(), None, "h")));
        assert_eq!(names(needs.concerned(&of(), "", "g", &Difference::unknown(), |_| true)), ["a", "b"]);
    }

    #[test]
    fn it_says_when_something_is_needed_first_or_no_longer() {
        let mut needs = Needs::default();
        let both = [named(&of(), Some("t"), "g"), named(&of(), Some("t"), "h")]
            .iter()
            .map(Followed::from)
            .collect::<BTreeSet<_>>();
        assert!(!needs.set(&key("a"), both.clone()).is_empty());
        assert!(needs.set(&key("a"), both.clone()).is_empty(), "the same needs again");
        assert!(needs.set(&key("b"), both).is_empty(), "another object with the same needs");
        assert!(needs.set(&key("a"), BTreeSet::new()).is_empty(), "the other object still needs both");
        assert!(!needs.set(&key("b"), BTreeSet::new()).is_empty());
        assert_eq!(needs.of_type(&of()).count(), 0);
        assert!(!needs.is_needed(&of(), "t", "g"));
        assert!(needs.set(&key("nobody"), BTreeSet::new()).is_empty());
    }

    #[test]
    fn a_change_concerns_who_reads_a_changed_field() {
        let with = |label: &str, value: i64| {
            let metadata =
                json!({"namespace": "t", "name": "g", "uid": "u", "resourceVersion": "1", "labels": {"a": label}});
            let object = json!({"metadata": metadata, "spec": {"x": value, "y": 0}});
            Arrived::new(object, &of(), Extract { labels: true, ..Extract::default() }).unwrap().item
        };
        let mut needs = Needs::default();
        let named = named(&of(), Some("t"), "g");
        needs.set(&key("whole"), whole(&named));
        needs.set(&key("x"), reading(&named, "spec.x"));
        needs.set(&key("y"), reading(&named, "spec.y"));
        needs.set(&key("x by label"), reading(&labelled("1"), "spec.x"));
        needs.set(&key("y by label"), reading(&labelled("1"), "spec.y"));
        let both = reading(&named, "spec.y").into_iter().chain(reading(&labelled("1"), "spec.x")).collect();
        needs.set(&key("both"), both);
        let concerned = |before: &CachedObject, after: &CachedObject| {
            names(needs.concerned(&of(), "t", "g", &Difference::new(Some(before), Some(after)), |_| true))
        };
        assert_eq!(concerned(&with("1", 1), &with("1", 2)), ["both", "whole", "x", "x by label"]);
        assert_eq!(concerned(&with("2", 1), &with("2", 2)), ["whole", "x"]);
        let moved = concerned(&with("1", 1), &with("2", 1));
        assert_eq!(moved, ["both", "whole", "x by label", "y by label"], "the selector selects the object no longer");
        let gone = needs.concerned(&of(), "t", "g", &Difference::new(Some(&with("1", 1)), None), |_| true);
        assert_eq!(names(gone), ["both", "whole", "x", "x by label", "y", "y by label"]);
    }

    #[test]
    fn equal_fields_are_kept_once_and_forgotten_with_their_last_reader() {
        let mut needs = Needs::default();
        let targets = ["g", "h"].map(|name| named(&of(), Some("t"), name));
        for target in &targets {
            needs.set(&key(if *target == targets[0] { "a" } else { "b" }), reading(target, "spec.x"));
        }
        assert_eq!(needs.fields.len(), 1);
        assert!(needs.set(&key("a"), reading(&targets[0], "spec.y")).is_empty(), "the target stays needed");
        assert_eq!(needs.fields.len(), 2);
        assert!(!needs.set(&key("a"), BTreeSet::new()).is_empty());
        assert_eq!(needs.fields.len(), 1);
        needs.set(&key("b"), BTreeSet::new());
        assert!(needs.fields.is_empty());
    }
}
