//! The part of an object that paths select. The part has the structure of the object, but only the selected values.

use alloc::{
    borrow::ToOwned,
    collections::{BTreeMap, BTreeSet},
    string::String,
    vec::Vec,
};

use serde_json::{Map, Value};

use crate::path::Step;

/// The selected part of one value. Paths with the same beginning share a part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    /// Whether the whole value is selected.
    whole: bool,
    /// Whether a path with `?` selects the presence of the value.
    present: bool,
    members: BTreeMap<String, Part>,
    /// The selected texts.
    equal: BTreeSet<String>,
    /// The selected items of a list. The key of an entry is the name and the text of the member that selects the item.
    items: BTreeMap<(String, String), Part>,
}

impl Part {
    /// Adds a path.
    pub(crate) fn add(&mut self, steps: &[Step]) {
        let Some((step, rest)) = steps.split_first() else {
            self.whole = true;
            return;
        };
        match step {
            Step::Member(name) => self.members.entry(name.clone()).or_default().add(rest),
            Step::Items(name, text) => self.items.entry((name.clone(), text.clone())).or_default().add(rest),
            Step::Equal(text) => {
                self.equal.insert(text.clone());
            }
            Step::Present => self.present = true,
        }
    }

    /// Returns the selected part of a value, if any. If no path expects the value's JSON type, returns the whole value,
    /// so that the reader sees the unexpected type. Sorts the selected texts of a list, and removes duplicates.
    pub(crate) fn of(&self, value: &Value) -> Option<Value> {
        match value {
            _ if self.whole => Some(value.clone()),
            Value::Object(map) if !self.members.is_empty() => Some(Value::Object(self.of_map(map))),
            Value::Array(list) if !self.equal.is_empty() || !self.items.is_empty() => {
                let texts: BTreeSet<&str> = list.iter().filter_map(Value::as_str).collect();
                let texts = texts.into_iter().filter(|text| self.equal.contains(*text)).map(Value::from);
                let maps = list.iter().filter_map(|item| self.of_item(item));
                Some(Value::Array(texts.chain(maps).collect()))
            }
            Value::String(text) if !self.equal.is_empty() => {
                let is_selected = self.equal.contains(text);
                is_selected.then(|| value.clone()).or_else(|| self.present.then_some(Value::Bool(true)))
            }
            Value::Null if self.is_presence() => None,
            _ if self.is_presence() => Some(Value::Bool(true)),
            _ => Some(value.clone()),
        }
    }

    /// Returns whether only the presence of the value is selected.
    fn is_presence(&self) -> bool {
        self.present && self.members.is_empty() && self.equal.is_empty() && self.items.is_empty()
    }

    fn of_map(&self, map: &Map<String, Value>) -> Map<String, Value> {
        let part = |(name, part): (&String, &Self)| Some((name.clone(), part.of(map.get(name)?)?));
        self.members.iter().filter_map(part).collect()
    }

    /// Returns the selected part of a map in a list, or `None` if the path does not select the map.
    fn of_item(&self, item: &Value) -> Option<Value> {
        let map = item.as_object()?;
        let is_of = |(name, text): &(String, String)| map.get(name).and_then(Value::as_str) == Some(text);
        let selecting: Vec<_> = self.items.iter().filter(|(by, _)| is_of(by)).collect();
        if selecting.is_empty() {
            return None;
        }
        let mut all = Self::default();
        for ((name, _), part) in selecting {
            all.merge(part);
            all.merge(&Self::member(name));
        }
        all.of(item)
    }

    /// Selects one member as a whole.
    fn member(name: &str) -> Self {
        let whole = Self { whole: true, ..Self::default() };
        Self { members: BTreeMap::from([(name.to_owned(), whole)]), ..Self::default() }
    }

    fn merge(&mut self, other: &Self) {
        self.whole |= other.whole;
        self.present |= other.present;
        self.equal.extend(other.equal.iter().cloned());
        for (name, part) in &other.members {
            self.members.entry(name.clone()).or_default().merge(part);
        }
        for (by, part) in &other.items {
            self.items.entry(by.clone()).or_default().merge(part);
        }
    }
}
