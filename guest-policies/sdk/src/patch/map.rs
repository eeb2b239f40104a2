//! Merges maps, and applies the directives in them.

use super::clean::fresh;
use super::directive::{DELETE_FROM, DIRECTIVE, ELEMENT_ORDER, RETAIN_KEYS, is_directive};
use super::options::Options;
use super::table::{Exclusive, Field, PLAIN, Type};
use super::{Error, Here, Problem, list, order};
use crate::json::keep;
use alloc::string::String;
use serde_json::{Map, Value};

/// Merges `patch` into `base`.
pub(super) fn merge(
    mut base: Map<String, Value>,
    patch: &Map<String, Value>,
    of: &Type,
    options: Options,
    path: &Here<'_>,
) -> Result<Map<String, Value>, Error> {
    match patch.get(DIRECTIVE).and_then(Value::as_str) {
        Some("delete") => return Ok(Map::new()),
        Some("replace") => {
            return Ok(match fresh(&Value::Object(patch.clone())) {
                Some(Value::Object(map)) => map,
                _ => Map::new(),
            });
        }
        _ => {}
    }
    retain_keys(&mut base, patch, path)?;
    if options.exclusive {
        make_room(&mut base, patch, &of.exclusive);
    }
    // First set to null each member that the patch deletes. The last step of this function removes these nulls.
    let mut has_nulls = false;
    let is_ordered = patch.keys().any(|key| key.starts_with(ELEMENT_ORDER));
    for (key, value) in patch {
        if let Some(field) = key.strip_prefix(DELETE_FROM) {
            delete_from(&mut base, field, value, &path.key(key))?;
        } else if let Some(field) = key.strip_prefix(ELEMENT_ORDER) {
            if !patch.contains_key(field) {
                set_order(&mut base, field, value, of, &path.key(key))?;
            }
        } else if !is_directive(key) {
            let wanted = if is_ordered { patch.get(&format!("{ELEMENT_ORDER}{key}")) } else { None };
            if let Some(below) = base.get_mut(key) {
                let merged = member(below.take(), value, of.field(key), wanted, options, &path.key(key))?;
                has_nulls |= merged.is_none();
                *below = merged.unwrap_or_default();
            } else if let Some(value) = fresh(value) {
                base.insert(key.clone(), value);
            }
        }
    }
    if has_nulls {
        keep(&mut base, &|key, value| !value.is_null() || !patch.contains_key(key));
    }
    Ok(base)
}

/// Merges one member that both the base and the patch have.
fn member(
    below: Value,
    patch: &Value,
    field: Option<Field>,
    wanted: Option<&Value>,
    options: Options,
    path: &Here<'_>,
) -> Result<Option<Value>, Error> {
    let merged = match (below, patch, field) {
        (Value::Object(below), Value::Object(patch), field) => {
            let of = if let Some(Field::Object(of)) = field { of } else { &PLAIN };
            Value::Object(merge(below, patch, of, options, path)?)
        }
        (Value::Array(below), Value::Array(patch), Some(Field::List(key, of))) => {
            Value::Array(list::merge(below, patch, list::Items { key, of, merge }, wanted, options, path)?)
        }
        (Value::Array(below), Value::Array(patch), Some(Field::Set)) => {
            Value::Array(list::merge_set(below, patch, wanted, path)?)
        }
        (_, patch, _) => return Ok(fresh(patch)),
    };
    Ok(Some(merged))
}

/// Applies `$retainKeys`: removes every member that the directive does not list.
fn retain_keys(base: &mut Map<String, Value>, patch: &Map<String, Value>, path: &Here<'_>) -> Result<(), Error> {
    let Some(keys) = patch.get(RETAIN_KEYS) else { return Ok(()) };
    let keys = keys.as_array().ok_or_else(|| Error::new(path.key(RETAIN_KEYS), Problem::NotAList))?;
    let retained = |key: &str| keys.iter().any(|kept| kept.as_str() == Some(key));
    let stray = patch.iter().find(|(key, value)| !value.is_null() && !is_directive(key) && !retained(key));
    if let Some((key, _)) = stray {
        return Err(Error::new(path.key(RETAIN_KEYS), Problem::NotRetained(key.clone())));
    }
    keep(base, &|key, _| retained(key));
    Ok(())
}

/// Removes the members of `base` that must not exist together with a member of `patch`.
fn make_room(base: &mut Map<String, Value>, patch: &Map<String, Value>, exclusive: &Exclusive) {
    let sets = |key: &str| patch.get(key).is_some_and(|value| !value.is_null());
    if let Exclusive::By(kind) = exclusive {
        if sets(kind) && base.get(*kind) != patch.get(*kind) {
            base.clear();
        }
    } else if patch.keys().any(|key| exclusive.rivals(key) && sets(key)) {
        keep(base, &|key, _| !exclusive.rivals(key) || sets(key));
    }
}

/// Applies `$deleteFromPrimitiveList/field`.
fn delete_from(base: &mut Map<String, Value>, field: &str, gone: &Value, path: &Here<'_>) -> Result<(), Error> {
    let gone = gone.as_array().ok_or_else(|| Error::new(*path, Problem::NotAList))?;
    if let Some(Value::Array(items)) = base.get_mut(field) {
        items.retain(|item| !gone.contains(item));
    }
    Ok(())
}

/// Applies `$setElementOrder/field` of a patch that does not contain the field itself.
fn set_order(
    base: &mut Map<String, Value>,
    field: &str,
    wanted: &Value,
    of: &Type,
    path: &Here<'_>,
) -> Result<(), Error> {
    let wanted = wanted.as_array().ok_or_else(|| Error::new(*path, Problem::NotAList))?;
    let key = match of.field(field) {
        Some(Field::List(key, _)) => Some(key),
        _ => None,
    };
    if let Some(Value::Array(items)) = base.get_mut(field) {
        let ids = order::ids(wanted, key, path, Problem::NoMergeKey)?;
        let below = order::ids(items, key, path, Problem::BaseWithoutMergeKey)?;
        *items = order::arrange(core::mem::take(items), &below, &ids, &below);
    }
    Ok(())
}
