//! `#[derive(Decode)]` generates code that calls the functions in this file. These functions read the fields of a
//! struct, and find the variant of an enum.

use crate::{Decode, Error};
use alloc::{borrow::ToOwned, string::String};
use serde_json::{Map, Value};

/// The members of an object that is decoded as a struct.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    /// Returns the members of `value`, which must be an object.
    pub fn of(value: &'a Value) -> Result<Self, Error> {
        match value {
            Value::Object(members) => Ok(Self(members)),
            other => Err(Error::mismatch("an object", other)),
        }
    }

    /// Returns the names of members that are not in `known`. Leaves out members with the value null.
    pub fn others(self, known: &[&str]) -> impl Iterator<Item = &'a str> {
        let is_other = |(name, value): &(&String, &Value)| !value.is_null() && !known.contains(&name.as_str());
        self.0.iter().filter(is_other).map(|(name, _)| name.as_str())
    }

    /// Refuses members that are not in `known`.
    pub fn only(self, known: &[&str]) -> Result<(), Error> {
        match self.others(known).next() {
            None => Ok(()),
            Some(name) => {
                let message = format!("is not a known field; the known fields are {}", known.join(", "));
                Err(Error::new(message).in_member(name))
            }
        }
    }

    /// Decodes the field `name`. Returns an error if the field is absent and its type has no value for an absent field.
    #[inline(never)]
    pub fn get<T: Decode>(self, name: &str) -> Result<T, Error> {
        match self.find(name) {
            Some(value) => T::decode(value).map_err(|error| error.in_member(name)),
            None => T::absent().ok_or_else(|| missing(name)),
        }
    }

    /// Decodes the field `name`, or returns `default`.
    #[inline(never)]
    pub fn get_or<T: Decode>(self, name: &str, default: T) -> Result<T, Error> {
        let mut field = default;
        self.set(name, &mut field).map(|()| field)
    }

    /// Decodes the field `name` into `target`, if the field is present.
    #[inline(never)]
    pub fn set<T: Decode>(self, name: &str, target: &mut T) -> Result<(), Error> {
        if let Some(value) = self.find(name) {
            *target = T::decode(value).map_err(|error| error.in_member(name))?;
        }
        Ok(())
    }

    #[inline(never)]
    fn find(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }
}

/// Creates the error for a missing field. This code is not in `get`, because the compiler generates a copy of `get` for
/// each type.
#[cold]
#[inline(never)]
fn missing(name: &str) -> Error {
    Error::new("is required".to_owned()).in_member(name)
}

/// Finds the text in `value` among `names`, and returns its index.
pub fn variant(value: &Value, names: &[&str]) -> Result<usize, Error> {
    let Value::String(text) = value else {
        return Err(Error::mismatch(&format!("one of {}", names.join(", ")), value));
    };
    let known = names.iter().position(|name| name == text);
    known.ok_or_else(|| {
        let shown = crate::shown(text, crate::SHOWN);
        Error::new(format!("must be one of {}, not \"{shown}\"", names.join(", ")))
    })
}
