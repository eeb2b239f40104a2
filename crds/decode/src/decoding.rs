//! The trait.

use crate::Error;
use serde_json::Value;

/// What can be read from a JSON value.
pub trait Decode: Sized {
    /// `value` as this type.
    fn decode(value: &Value) -> Result<Self, Error>;

    /// What a field is that is not there; none for a type that needs a value.
    fn absent() -> Option<Self> {
        None
    }
}

/// `value` as a `T`.
pub fn decode<T: Decode>(value: &Value) -> Result<T, Error> {
    T::decode(value)
}
