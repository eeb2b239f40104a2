//! Merges lists, either by key or as sets of plain values.

use super::clean::fresh;
use super::directive::DIRECTIVE;
use super::options::Options;
use super::order::{arrange, ids, positions};
use super::table::Type;
use super::{Error, Here, Problem};
use crate::Places;
use alloc::{string::String, vec::Vec};
use serde_json::{Map, Value};

/// A function that merges one map into another.
type MergeItem =
    fn(Map<String, Value>, &Map<String, Value>, &Type, Options, &Here<'_>) -> Result<Map<String, Value>, Error>;

/// The merge key, the type and the merge function of the items in a list.
#[derive(Clone, Copy)]
pub(super) struct Items {
    pub(super) key: &'static str,
    pub(super) of: &'static Type,
    /// Merges one item.
    pub(super) merge: MergeItem,
}

/// Merges each item of `patch` into the item of `base` with the same key. `wanted` is a `$setElementOrder` list.
pub(super) fn merge(
    mut base: Vec<Value>,
    patch: &[Value],
    items: Items,
    wanted: Option<&Value>,
    options: Options,
    path: &Here<'_>,
) -> Result<Vec<Value>, Error> {
    let key = Some(items.key);
    let instructions = Instructions::read(patch, items.key, path)?;
    if instructions.replace {
        return Ok(instructions.content.into_iter().filter_map(|(_, item)| fresh(item)).collect());
    }
    let mut below = ids(&base, key, path, Problem::BaseWithoutMergeKey)?;
    let length = below.len();
    if !instructions.deleted.is_empty() {
        let gone = positions(&instructions.deleted);
        let mut kept = below.iter().map(|id| gone.get(id).is_none());
        base.retain(|_| kept.next().unwrap_or(true));
        below.retain(|id| gone.get(id).is_none());
    }
    let id = |(at, item): &(usize, &Value)| single(item, items.key, &path.index(*at));
    let named = instructions.content.iter().map(id).collect::<Result<Vec<_>, _>>()?;
    let mut own = below.clone();
    let mut known = positions(&below);
    for ((at, item), id) in instructions.content.into_iter().zip(&named) {
        if let Some(to) = known.get(id) {
            if let (Some(Value::Object(slot)), Value::Object(overlay)) = (base.get_mut(to), item) {
                let merged = (items.merge)(core::mem::take(slot), overlay, items.of, options, &path.index(at))?;
                *slot = merged;
            }
        } else if let Some(item) = fresh(item) {
            known.insert(id, base.len());
            own.push(id.clone());
            base.push(item);
        }
    }
    match wanted {
        None => Ok(arrange(base, &own, &named, &below)),
        Some(wanted) => {
            let wanted = ordered(wanted, key, &named, path)?;
            // Do as Go does: Go puts new items into the slots of deleted items, and treats these new items as items of
            // the base.
            Ok(arrange(base, &own, &wanted, &own[..length.min(own.len())]))
        }
    }
}

/// Merges the plain values of `base` and `patch` into one set.
pub(super) fn merge_set(
    base: Vec<Value>,
    patch: &[Value],
    wanted: Option<&Value>,
    path: &Here<'_>,
) -> Result<Vec<Value>, Error> {
    let kind = |value: &Value| core::mem::discriminant(value);
    if let Some(at) = patch.iter().position(|item| item.is_object() || item.is_array()) {
        return Err(Error::new(path.index(at), Problem::MixedItems));
    }
    let first = base.first().or(patch.first()).map(kind);
    if let Some(at) = patch.iter().position(|item| Some(kind(item)) != first) {
        return Err(Error::new(path.index(at), Problem::MixedItems));
    }
    let below = ids(&base, None, path, Problem::NoMergeKey)?;
    let named = ids(patch, None, path, Problem::NoMergeKey)?;
    let (mut all, mut own) = (Vec::new(), Vec::new());
    let mut seen = Places::new();
    for (item, id) in base.into_iter().chain(patch.iter().cloned()).zip(below.iter().chain(&named)) {
        if seen.insert(id, 0).is_none() {
            all.push(item);
            own.push(id.clone());
        }
    }
    match wanted {
        None => Ok(arrange(all, &own, &named, &below)),
        Some(wanted) => Ok(arrange(all, &own, &ordered(wanted, None, &named, path)?, &below)),
    }
}

/// Returns the ids of a `$setElementOrder` list. The list must contain all ids of the patch, in the patch's order.
fn ordered(wanted: &Value, key: Option<&'static str>, named: &[String], path: &Here<'_>) -> Result<Vec<String>, Error> {
    let list = wanted.as_array().ok_or_else(|| Error::new(*path, Problem::OrderMismatch))?;
    let wanted = ids(list, key, path, Problem::NoMergeKey)?;
    let mut rest = wanted.iter();
    if wanted.is_empty() || named.iter().all(|id| rest.any(|other| other == id)) {
        Ok(wanted)
    } else {
        Err(Error::new(*path, Problem::OrderMismatch))
    }
}

fn single(item: &Value, key: &'static str, path: &Here<'_>) -> Result<String, Error> {
    let found = ids(core::slice::from_ref(item), Some(key), path, Problem::NoMergeKey);
    match found {
        Ok(mut ids) => Ok(ids.pop().unwrap_or_default()),
        Err(error) => Err(Error::new(*path, error.problem().clone())),
    }
}

/// A patch list, split into content and directives.
struct Instructions<'a> {
    replace: bool,
    deleted: Vec<String>,
    content: Vec<(usize, &'a Value)>,
}

impl<'a> Instructions<'a> {
    fn read(patch: &'a [Value], key: &'static str, path: &Here<'_>) -> Result<Self, Error> {
        let mut read = Self { replace: false, deleted: Vec::new(), content: Vec::new() };
        for (at, item) in patch.iter().enumerate() {
            let Value::Object(map) = item else {
                return Err(Error::new(path.index(at), Problem::NotAnObject));
            };
            let Some(word) = map.get(DIRECTIVE) else {
                read.content.push((at, item));
                continue;
            };
            match word.as_str() {
                Some("delete") => read.deleted.push(single(item, key, &path.index(at))?),
                Some("replace") => read.replace = true,
                _ => return Err(Error::new(path.index(at), Problem::MergeInList(key))),
            }
        }
        Ok(read)
    }
}
