//! Groups of settings that most clusters do not set.

use alloc::boxed::Box;
use core::ops::Deref;
use kaos_policy_sdk::{Decode, DecodeError};
use serde_json::Value;

/// Provides the defaults of a group of settings. They apply if no settings layer sets a setting of the group.
pub trait LeftOut: 'static {
    /// Returns the defaults of all settings in the group.
    fn left_out() -> &'static Self;
}

/// A group of settings. If no settings layer sets a setting of the group, the group is null. So most passes spend no
/// fuel on decoding the group.
#[derive(Clone, Debug)]
pub struct Rare<T>(Option<Box<T>>);

impl<T> Default for Rare<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: LeftOut> Deref for Rare<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.0 {
            Some(settings) => settings,
            None => T::left_out(),
        }
    }
}

impl<T: LeftOut + PartialEq> PartialEq for Rare<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Decode> Decode for Rare<T> {
    fn decode(value: &Value) -> Result<Self, DecodeError> {
        T::decode(value).map(|settings| Self(Some(Box::new(settings))))
    }
}

#[cfg(feature = "schema")]
impl<T> serde::Serialize for Rare<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_none()
    }
}

#[cfg(feature = "schema")]
impl<T: schemars::JsonSchema> schemars::JsonSchema for Rare<T> {
    fn schema_name() -> alloc::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        T::json_schema(generator)
    }
}
