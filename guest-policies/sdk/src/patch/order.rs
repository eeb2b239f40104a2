//! The order of merged lists, as Go makes it.
//!
//! Items that the patch names keep the patch's order among themselves, all others keep the order they had.
//! The two rows are then zipped: an item from below goes first only if both heads were below already and it
//! came before the other one; in all other cases the patch's item does.

use super::{Error, Here, Problem};
use crate::{Places, json};
use alloc::{borrow::ToOwned, string::String, vec::Vec};
use serde_json::{Map, Value};

/// What tells items apart: the value of the merge key, or the item itself.
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

/// Texts stand for themselves; everything else is marked, so that `8000` is not `"8000"`.
fn id(value: &Value) -> String {
    value.as_str().map_or_else(|| format!("\0{}", json::text(value)), ToOwned::to_owned)
}

/// What tells ports of one number apart. A port is TCP's where nothing is said.
fn protocol<'a>(key: &str, map: &'a Map<String, Value>) -> &'a str {
    if key != "containerPort" && key != "port" {
        return "";
    }
    map.get("protocol").and_then(Value::as_str).filter(|protocol| *protocol != "TCP").unwrap_or_default()
}

/// Where each id stands first.
pub(super) fn positions(ids: &[String]) -> Places<'_> {
    ids.iter().map(String::as_str).collect()
}

/// `items` (with their `own` ids), those that `wanted` names in its order, and the others as they were
/// `below`.
pub(super) fn arrange(items: Vec<Value>, own: &[String], wanted: &[String], below: &[String]) -> Vec<Value> {
    // A place for each position instead of a sort, whose code would be larger than all of this.
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
