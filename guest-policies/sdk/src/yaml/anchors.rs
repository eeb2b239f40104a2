//! Stores anchored values, and limits the total size of the copies that anchors and aliases make.

use super::{MAX_ALIASED, Problem};
use alloc::vec::Vec;
use serde_json::Value;

/// The anchored values, and the size of all copies so far.
#[derive(Default)]
pub(super) struct Anchors<'a> {
    known: Vec<(&'a str, Value, usize)>,
    aliased: usize,
}

impl<'a> Anchors<'a> {
    pub(super) fn count(&mut self, size: usize) -> Result<(), Problem> {
        self.aliased = self.aliased.saturating_add(size);
        if self.aliased > MAX_ALIASED { Err(Problem::TooManyAliases) } else { Ok(()) }
    }

    pub(super) fn set(&mut self, name: &'a str, value: &Value) -> Result<(), Problem> {
        let size = size(value);
        self.known.push((name, value.clone(), size));
        self.count(size)
    }

    pub(super) fn get(&mut self, name: &str) -> Result<Value, Problem> {
        let known = self.known.iter().rev().find(|(known, ..)| *known == name);
        let (value, size) = known.map(|(_, value, size)| (value.clone(), *size)).ok_or(Problem::UnknownAlias)?;
        self.count(size)?;
        Ok(value)
    }
}

fn size(value: &Value) -> usize {
    1 + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(map) => map.iter().map(|(key, value)| key.len() + size(value)).sum(),
        _ => 0,
    }
}
