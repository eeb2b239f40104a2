//! Paths of fields in JSON objects, the part of an object that a set of paths selects, and the scopes of types.
//!
//! | module | content |
//! |---|---|
//! | `path` | the grammar of a path |
//! | `part` | the part of an object that paths select |
//! | `scope` | whether a type is cluster-scoped |
//!
//! The host and the test harness of the SDK share this crate. So a test of a policy finds the same objects as a pass,
//! and sees the same part of an object.
#![cfg_attr(all(target_arch = "wasm32", target_os = "unknown"), no_std)]

extern crate alloc;

mod part;
mod path;
mod scope;

use alloc::{borrow::ToOwned, string::String, vec::Vec};
use core::{cmp::Ordering, hash};

use serde_json::Value;

use part::Part;
pub use path::{FieldError, MAX_BYTES, MAX_FIELDS, PathError};
pub use scope::Scopes;

/// The paths in every selection. These paths identify the object, and show whether a user has deleted it.
const ALWAYS: [&str; 6] =
    ["apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.deletionTimestamp"];

/// The selected fields of an object: all fields, or the fields at some paths.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    /// The paths, sorted and without duplicates. If all fields are selected, the list is empty.
    paths: Vec<String>,
    part: Part,
}

impl Fields {
    /// Selects all fields.
    #[must_use]
    pub fn whole() -> Self {
        Self::default()
    }

    /// Selects the fields at these paths, and the fields that identify the object. An empty list selects all fields.
    pub fn parse(paths: &[String]) -> Result<Self, FieldError> {
        if paths.len() > MAX_FIELDS {
            return Err(FieldError::TooMany(paths.len()));
        }
        let mut all = Self::whole();
        if paths.is_empty() {
            return Ok(all);
        }
        for text in ALWAYS.into_iter().chain(paths.iter().map(String::as_str)) {
            let steps = path::parse(text).map_err(|why| FieldError::Path { path: text.to_owned(), why })?;
            all.part.add(&steps);
        }
        all.paths = paths.to_vec();
        all.paths.sort_unstable();
        all.paths.dedup();
        Ok(all)
    }

    /// Returns whether all fields are selected.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.paths.is_empty()
    }

    /// Returns the sorted paths; empty for the whole object.
    #[must_use]
    pub fn paths(&self) -> &[String] {
        &self.paths
    }

    /// Returns only the selected fields of an object.
    #[must_use]
    pub fn of(&self, object: &Value) -> Value {
        if self.is_whole() { object.clone() } else { self.part.of(object).unwrap_or_default() }
    }
}

impl PartialEq for Fields {
    fn eq(&self, other: &Self) -> bool {
        self.paths == other.paths
    }
}

impl Eq for Fields {}

impl PartialOrd for Fields {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Fields {
    fn cmp(&self, other: &Self) -> Ordering {
        self.paths.cmp(&other.paths)
    }
}

impl hash::Hash for Fields {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.paths.hash(state);
    }
}

#[cfg(test)]
mod tests;
