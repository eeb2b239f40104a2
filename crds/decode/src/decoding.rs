//! The trait [`Decode`], and the function that decodes a value.

use crate::Error;
use serde_json::Value;

/// A type that can be decoded from a JSON value.
pub trait Decode: Sized {
    /// Decodes `value`.
    fn decode(value: &Value) -> Result<Self, Error>;

    /// Returns the value of an absent field. Returns `None` if the type requires a value.
    fn absent() -> Option<Self> {
        None
    }
}

/// Decodes `value` as a `T`.
pub fn decode<T: Decode>(value: &Value) -> Result<T, Error> {
    T::decode(value)
}
