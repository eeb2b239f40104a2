//! Checks a patch alone, without the base.

use super::directive::{DIRECTIVE, is_directive};
use super::options::Options;
use super::table::{Field, PLAIN, Type};
use super::{Error, Here, Problem};
use alloc::string::String;
use serde_json::{Map, Value};

/// Refuses unknown directives. With `options.exclusive`, also refuses two members that exclude each other.
pub(super) fn object(patch: &Map<String, Value>, of: &Type, options: Options, path: &Here<'_>) -> Result<(), Error> {
    match patch.get(DIRECTIVE).map(Value::as_str) {
        Some(Some("delete")) => return Ok(()),
        None | Some(Some("replace" | "merge")) => {}
        Some(_) => return Err(Error::new(path.key(DIRECTIVE), Problem::UnknownDirective)),
    }
    if options.exclusive {
        // An empty text means unset, as on an API server: `value: ""` is allowed together with `valueFrom`.
        let said = |value: &Value| !value.is_null() && value != "";
        let mut rivals = patch.iter().filter(|(key, value)| of.exclusive.rivals(key) && said(value));
        if let (Some((one, _)), Some((other, _))) = (rivals.next(), rivals.next()) {
            return Err(Error::new(path.key(other), Problem::NotBeside(one.clone())));
        }
    }
    patch.iter().filter(|(key, _)| !is_directive(key)).try_for_each(|(key, member)| {
        let below = match of.field(key) {
            Some(Field::Object(below) | Field::List(_, below)) => below,
            _ => &PLAIN,
        };
        value(member, below, options, &path.key(key))
    })
}

fn value(patch: &Value, of: &Type, options: Options, path: &Here<'_>) -> Result<(), Error> {
    match patch {
        Value::Object(map) => object(map, of, options, path),
        Value::Array(items) => {
            items.iter().enumerate().try_for_each(|(at, item)| value(item, of, options, &path.index(at)))
        }
        _ => Ok(()),
    }
}
