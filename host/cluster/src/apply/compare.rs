//! Compares two objects. Returns three sets of fields: added, modified and removed.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    FieldSet, element,
    shape::{Kind, field_of, is_hollow, kind_of},
};
use crate::schema::{Items, List, Node};

/// Added, modified and removed fields.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) added: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) removed: FieldSet,
}

/// Compares two objects with the same schema.
pub(super) fn compare(old: &Value, new: &Value, node: &Node) -> Changes {
    let mut changes = Changes::default();
    visit(Some(old), Some(new), node, &mut Vec::new(), &mut changes);
    changes
}

impl Changes {
    /// Removes changes at or below the given fields.
    pub(super) fn without(self, ignored: &FieldSet) -> Self {
        Self {
            added: self.added.without_subtrees(ignored),
            modified: self.modified.without_subtrees(ignored),
            removed: self.removed.without_subtrees(ignored),
        }
    }
}

fn visit(old: Option<&Value>, new: Option<&Value>, node: &Node, path: &mut Vec<String>, changes: &mut Changes) {
    if old == new {
        return;
    }
    let leaf = match kind_of(node, old.or(new)) {
        Kind::Map(atomic) => {
            let (left, right) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
            if atomic || (is_hollow(left.map(Map::len)) && is_hollow(right.map(Map::len))) {
                true
            } else {
                let empty = Map::new();
                let (left, right) = (left.unwrap_or(&empty), right.unwrap_or(&empty));
                let added = right.keys().filter(|name| !left.contains_key(*name));
                for name in left.keys().chain(added) {
                    let field = field_of(node, name);
                    path.push(element::field(name));
                    visit(left.get(name), right.get(name), field, path, changes);
                    path.pop();
                }
                false
            }
        }
        Kind::List(list) => {
            let (left, right) = (old.and_then(Value::as_array), new.and_then(Value::as_array));
            if list.items == Items::Atomic || (is_hollow(left.map(Vec::len)) && is_hollow(right.map(Vec::len))) {
                true
            } else {
                items(left.map_or(&[], Vec::as_slice), right.map_or(&[], Vec::as_slice), list, path, changes);
                false
            }
        }
        Kind::Leaf => true,
    };
    match (old, new) {
        (None, Some(_)) => changes.added.insert(path),
        (Some(_), None) => changes.removed.insert(path),
        (Some(old), Some(new)) if leaf && old != new => changes.modified.insert(path),
        _ => {}
    }
}

/// Compares the items of two lists by identity. If one of the lists contains an identity several times, compares all
/// items with this identity as a group.
fn items(left: &[Value], right: &[Value], list: &List, path: &mut Vec<String>, changes: &mut Changes) {
    let mut pairs: BTreeMap<String, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
    for item in left {
        if let Ok(step) = element::item(item, list) {
            pairs.entry(step).or_default().0.push(item);
        }
    }
    for item in right {
        if let Ok(step) = element::item(item, list) {
            pairs.entry(step).or_default().1.push(item);
        }
    }
    for (step, (left, right)) in pairs {
        path.push(step);
        match (left.as_slice(), right.as_slice()) {
            ([] | [_], [] | [_]) => visit(left.first().copied(), right.first().copied(), &list.item, path, changes),
            (_, [] | [_]) => {
                if let Some(one) = right.first() {
                    visit(None, Some(one), &list.item, path, changes);
                }
                changes.removed.insert(path);
            }
            ([] | [_], _) => {
                if let Some(one) = left.first() {
                    visit(Some(one), None, &list.item, path, changes);
                }
                changes.added.insert(path);
            }
            (left, right) if left != right => changes.modified.insert(path),
            _ => {}
        }
        path.pop();
    }
}
