//! Orders merged lists as Go does.
//!
//! Items that the patch names form a first sequence, in the patch's order. All other items form a second sequence, in
//! the base's order. The merge then repeatedly compares the first remaining items of both sequences. It takes the item
//! of the second sequence only if this item is before the other item in the base. Otherwise, it takes the item of the
//! first sequence.

use super::{Error, Here, Problem};
use crate::{Places, json};
use alloc::{borrow::ToOwned, string::String, vec::Vec};
use serde_json::{Map, Value};

/// Returns the ids of items. The id is the value of the merge key, or the item itself in a list without merge key.
pub(super) fn ids(
    items: &[Value],
    key: Option<&'static str>,
    path: &Here<'_>,
    missing: fn(&'static str) -> Problem,
) -> Result<Vec<String>, Error> {
    let id = |(at, item): (usize, &Value)| match key {
        None => Ok(id(item)),
        Some(key) => match item {
            Value::Object(map) => match map.get(key) {
                Some(value) if !value.is_null() => Ok(id(value) + protocol(key, map)),
                _ => Err(Error::new(path.index(at), missing(key))),
            },
            _ => Err(Error::new(path.index(at), Problem::NotAnObject)),
        },
    };
    items.iter().enumerate().map(id).collect()
}

/// Returns the id of a value. A text is its own id. The id of another value begins with a control character, so that
/// `8000` differs from `"8000"`.
fn id(value: &Value) -> String {
    value.as_str().map_or_else(|| format!("\0{}", json::text(value)), ToOwned::to_owned)
}

/// Returns the protocol, which distinguishes two ports with the same number. Returns an empty text for the default
/// protocol, TCP.
fn protocol<'a>(key: &str, map: &'a Map<String, Value>) -> &'a str {
    if key != "containerPort" && key != "port" {
        return "";
    }
    map.get("protocol").and_then(Value::as_str).filter(|protocol| *protocol != "TCP").unwrap_or_default()
}

/// Returns the first position of each id.
pub(super) fn positions(ids: &[String]) -> Places<'_> {
    ids.iter().map(String::as_str).collect()
}

/// Orders `items`; `own` has the id of each item. Items with an id in `wanted` get the order of `wanted`. All other
/// items keep their order. `below` has the ids of the base: their order decides how both sequences mix.
pub(super) fn arrange(items: Vec<Value>, own: &[String], wanted: &[String], below: &[String]) -> Vec<Value> {
    // Use one slot for each position in `wanted`. The code of a sort would be larger than this whole file.
    let mut named: Vec<Vec<_>> = wanted.iter().map(|_| Vec::new()).collect();
    let mut others = Vec::new();
    let (wanted, below) = (positions(wanted), positions(below));
    for (item, id) in items.into_iter().zip(own) {
        let was = below.get(id);
        match wanted.get(id) {
            Some(to) if to < named.len() => named[to].push((was, item)),
            _ => others.push((was, item)),
        }
    }
    let mut arranged = Vec::with_capacity(own.len());
    let mut others = others.into_iter().peekable();
    for (was, item) in named.into_iter().flatten() {
        let is_before =
            |other: &(Option<usize>, Value)| matches!((other.0, was), (Some(other), Some(was)) if other < was);
        while let Some((_, other)) = others.next_if(is_before) {
            arranged.push(other);
        }
        arranged.push(item);
    }
    arranged.extend(others.map(|(_, item)| item));
    arranged
}
