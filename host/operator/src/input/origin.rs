//! An input object and its position.

use std::{fmt, sync::Arc};

use serde_json::Value;

use super::Identity;

/// The position of an object in the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentOrigin {
    /// The path of the file, as the user gave it.
    pub file: Arc<str>,
    /// The number of the document in the file, from 1.
    pub document: usize,
    /// The index of the object in its list; `None` if the document is not a list.
    pub item: Option<usize>,
}

impl fmt::Display for DocumentOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: document {}", self.file, self.document)?;
        self.item.map_or(Ok(()), |item| write!(f, ": items[{item}]"))
    }
}

/// An object from the input.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The file, the document and the list item that contain the object.
    pub origin: DocumentOrigin,
    /// The identity of the object.
    pub identity: Identity,
    /// The object.
    pub object: Value,
}
