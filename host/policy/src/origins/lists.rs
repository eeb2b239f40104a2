//! Finds the items of a list in a source that correspond to an item of a list in a manifest.
//!
//! A merge moves items, so positions mean nothing. An item corresponds to the items with the same `name`, and to the
//! items without a `name`.

use std::{cell::RefCell, collections::HashMap};

use serde_json::Value;

/// An index of each list that a look-up has searched: the positions of the list's items, by name.
#[derive(Default)]
pub(super) struct Lists<'a>(RefCell<HashMap<*const Value, Positions<'a>>>);

#[derive(Default)]
struct Positions<'a> {
    named: HashMap<&'a str, Vec<usize>>,
    nameless: Vec<usize>,
}

impl<'a> Lists<'a> {
    /// Returns the positions of the items in `list` that correspond to `item`. `items` are the items of `list`.
    pub(super) fn corresponding(&self, list: &'a Value, items: &'a [Value], item: &Value) -> Vec<usize> {
        let mut read = self.0.borrow_mut();
        let positions = read.entry(std::ptr::from_ref(list)).or_insert_with(|| Positions::of(items));
        let named = item["name"].as_str().and_then(|name| positions.named.get(name));
        named.into_iter().flatten().chain(&positions.nameless).copied().collect()
    }
}

impl<'a> Positions<'a> {
    fn of(items: &'a [Value]) -> Self {
        let mut positions = Self::default();
        for (i, item) in items.iter().enumerate() {
            match item["name"].as_str() {
                Some(name) => positions.named.entry(name).or_default().push(i),
                None => positions.nameless.push(i),
            }
        }
        positions
    }
}
