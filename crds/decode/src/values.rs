//! Implements [`Decode`] for scalars, lists, maps and raw JSON.

use crate::{Decode, Error};
use alloc::collections::BTreeMap;
use alloc::{borrow::ToOwned, string::String, vec::Vec};
use serde_json::{Map, Value};

impl Decode for Value {
    fn decode(value: &Value) -> Result<Self, Error> {
        Ok(value.clone())
    }
}

impl Decode for Map<String, Value> {
    fn decode(value: &Value) -> Result<Self, Error> {
        members(value).cloned()
    }
}

impl Decode for bool {
    fn decode(value: &Value) -> Result<Self, Error> {
        value.as_bool().ok_or_else(|| Error::mismatch("a boolean", value))
    }
}

impl Decode for String {
    #[inline(never)]
    fn decode(value: &Value) -> Result<Self, Error> {
        value.as_str().map(str::to_owned).ok_or_else(|| Error::mismatch("a string", value))
    }
}

impl Decode for f64 {
    fn decode(value: &Value) -> Result<Self, Error> {
        value.as_f64().ok_or_else(|| Error::mismatch("a number", value))
    }
}

impl Decode for i64 {
    fn decode(value: &Value) -> Result<Self, Error> {
        value.as_i64().ok_or_else(|| Error::mismatch("a whole number", value))
    }
}

impl Decode for u64 {
    fn decode(value: &Value) -> Result<Self, Error> {
        value.as_u64().ok_or_else(|| Error::mismatch("a whole number", value))
    }
}

#[inline(never)]
fn within(value: &Value, min: i64, max: i64) -> Result<i64, Error> {
    let number = value.as_i64().filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| Error::mismatch(&format!("a whole number from {min} to {max}"), value))
}

macro_rules! whole_numbers {
    ($($number:ty)*) => {$(
        impl Decode for $number {
            fn decode(value: &Value) -> Result<Self, Error> {
                let number = within(value, <$number>::MIN.into(), <$number>::MAX.into())?;
                // After the check above, `number` fits into the type.
                Ok(number.try_into().unwrap_or_default())
            }
        }
    )*};
}

whole_numbers!(i8 i16 i32 u8 u16 u32);

impl<T: Decode> Decode for Option<T> {
    fn decode(value: &Value) -> Result<Self, Error> {
        if value.is_null() { Ok(None) } else { T::decode(value).map(Some) }
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl<T: Decode> Decode for Vec<T> {
    #[inline(never)]
    fn decode(value: &Value) -> Result<Self, Error> {
        let items = items(value)?;
        let mut list = Self::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            list.push(T::decode(item).map_err(|error| error.in_item(index))?);
        }
        Ok(list)
    }
}

impl<T: Decode> Decode for BTreeMap<String, T> {
    #[inline(never)]
    fn decode(value: &Value) -> Result<Self, Error> {
        let mut map = Self::new();
        for (name, member) in members(value)? {
            map.insert(name.clone(), T::decode(member).map_err(|error| error.in_member(name))?);
        }
        Ok(map)
    }
}

fn items(value: &Value) -> Result<&Vec<Value>, Error> {
    value.as_array().ok_or_else(|| Error::mismatch("a list", value))
}

fn members(value: &Value) -> Result<&Map<String, Value>, Error> {
    value.as_object().ok_or_else(|| Error::mismatch("an object", value))
}
