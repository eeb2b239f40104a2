//! A set of fields as a tree, like the JSON of `fieldsV1` in managed fields. An inner node of the tree can also be a
//! member of the set.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{element, shape::field_of};
use crate::schema::{Node, Shape};

/// A set of paths. The edges of the tree are path elements in the form of `fieldsV1` (`f:name`, `k:{"name":"x"}`,
/// `v:"x"`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    owned: bool,
    below: BTreeMap<String, FieldSet>,
}

impl FieldSet {
    /// Adds a path.
    pub(crate) fn insert(&mut self, path: &[String]) {
        let mut node = self;
        for step in path {
            node = node.below.entry(step.clone()).or_default();
        }
        node.owned = true;
    }

    /// Returns a set of these paths. Each path is a list of field names.
    pub(crate) fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            set.insert(&path.iter().map(|name| element::field(name)).collect::<Vec<_>>());
        }
        set
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.owned && self.below.values().all(Self::is_empty)
    }

    /// Returns whether the root of the set is a member.
    pub(super) fn is_owned(&self) -> bool {
        self.owned
    }

    /// Returns the members below one path element, or `None` without such members.
    pub(super) fn step(&self, element: &str) -> Option<&Self> {
        self.below.get(element)
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.owned |= other.owned;
        for (step, set) in &other.below {
            let entry = all.below.entry(step.clone()).or_default();
            *entry = entry.union(set);
        }
        all
    }

    /// Returns the members of `self` that are not members of `other`.
    pub(crate) fn difference(&self, other: &Self) -> Self {
        self.combine(other, |mine, theirs| mine && !theirs, true)
    }

    /// Returns the paths that are members of both sets.
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        self.combine(other, |mine, theirs| mine && theirs, false)
    }

    fn combine(&self, other: &Self, keep: fn(bool, bool) -> bool, keep_lonely: bool) -> Self {
        let below = self.below.iter().filter_map(|(step, set)| {
            let left = match other.below.get(step) {
                Some(theirs) => set.combine(theirs, keep, keep_lonely),
                None if keep_lonely => set.clone(),
                None => return None,
            };
            (!left.is_empty()).then(|| (step.clone(), left))
        });
        Self { owned: keep(self.owned, other.owned), below: below.collect() }
    }

    /// Returns the members of `self` that are not at or below a member of `other`.
    pub(crate) fn without_subtrees(&self, other: &Self) -> Self {
        if other.owned {
            return Self::default();
        }
        let below = self.below.iter().filter_map(|(step, set)| {
            let left = other.below.get(step).map_or_else(|| set.clone(), |theirs| set.without_subtrees(theirs));
            (!left.is_empty()).then(|| (step.clone(), left))
        });
        Self { owned: self.owned, below: below.collect() }
    }

    /// Adds the fields on the path to each member, if the schema declares these fields. So if a caller removes all
    /// members of the result from an object, these fields disappear, too.
    pub(super) fn with_declared_fields(&self, node: &Node) -> Self {
        let below = self.below.iter().map(|(step, set)| {
            let (declared, inner) = match (step.strip_prefix("f:"), &node.shape) {
                (Some(name), Shape::Map(fields)) => (fields.known.contains_key(name), field_of(node, name)),
                (Some(name), _) => (false, field_of(node, name)),
                (None, Shape::List(list)) => (false, &*list.item),
                (None, _) => (false, node),
            };
            let mut set = set.with_declared_fields(inner);
            set.owned |= declared;
            (step.clone(), set)
        });
        Self { owned: self.owned, below: below.collect() }
    }

    /// Returns the paths of the members as texts: `.spec.containers[name="main"].image`.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.visit(&mut String::new(), &mut found);
        found
    }

    fn visit(&self, at: &mut String, found: &mut Vec<String>) {
        if self.owned {
            found.push(at.clone());
        }
        for (step, set) in &self.below {
            let length = at.len();
            at.push_str(&element::display(step));
            set.visit(at, found);
            at.truncate(length);
        }
    }

    /// Reads `fieldsV1`.
    pub(crate) fn read(value: &Value) -> Self {
        let mut set = Self::default();
        for (step, inner) in value.as_object().into_iter().flatten() {
            if step == "." {
                set.owned = true;
            } else {
                let mut inner_set = Self::read(inner);
                inner_set.owned |= inner.as_object().is_some_and(Map::is_empty);
                set.below.insert(step.clone(), inner_set);
            }
        }
        set
    }

    /// Writes `fieldsV1`.
    pub(crate) fn to_value(&self) -> Value {
        let mut object = Map::new();
        if self.owned && !self.below.is_empty() {
            object.insert(".".into(), Value::Object(Map::new()));
        }
        object.extend(self.below.iter().map(|(step, set)| (step.clone(), set.to_value())));
        Value::Object(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_v1_is_read_and_written_unchanged() {
        let value = json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}},
            "f:spec": {"f:list": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}}}, "f:n": {}}});
        let set = FieldSet::read(&value);
        assert_eq!(set.to_value(), value);
        assert_eq!(
            set.paths(),
            [
                ".metadata.labels",
                ".metadata.labels.a",
                ".spec.list[name=\"x\"]",
                ".spec.list[name=\"x\"].name",
                ".spec.n"
            ]
        );
    }

    #[test]
    fn difference_leaves_members_below_a_common_one() {
        let all = FieldSet::read(&json!({"f:a": {".": {}, "f:b": {}}}));
        let some = FieldSet::of_fields(&[&["a"]]);
        assert_eq!(all.difference(&some), FieldSet::of_fields(&[&["a", "b"]]));
        assert_eq!(all.intersection(&some), some);
        assert!(all.without_subtrees(&some).is_empty());
    }
}
