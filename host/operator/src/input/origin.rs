//! An object as it was written, and where.

use std::{fmt, sync::Arc};

use serde_json::Value;

use super::Identity;

/// Where an object was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The file as the user named it.
    pub file: Arc<str>,
    /// Which document of the file, counted from 1.
    pub document: usize,
    /// Which item, when the document is a list.
    pub item: Option<usize>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: document {}", self.file, self.document)?;
        self.item.map_or(Ok(()), |item| write!(f, ": items[{item}]"))
    }
}

/// An object as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Where it was written.
    pub origin: Origin,
    /// Which object it is.
    pub identity: Identity,
    /// The object itself.
    pub object: Value,
}
