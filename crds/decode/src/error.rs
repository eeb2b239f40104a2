//! Errors with a path, and with a message for authors of YAML. When an error occurs, each level of the object adds its
//! part of the path. So decoding a valid value builds no path.

use crate::Path;
use alloc::{borrow::ToOwned, boxed::Box, string::String, vec::Vec};
use core::fmt::{self, Display};
use serde_json::Value;

/// An error and its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    /// The parts of the path, from the innermost to the outermost.
    segments: Vec<Segment>,
    message: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Key(String),
    Index(usize),
}

impl Error {
    /// Creates an error about the value itself, with a `message` such as `must be a list`.
    pub fn new(message: String) -> Self {
        Self(Box::new(Inner { segments: Vec::new(), message }))
    }

    /// Creates an error about a value that does not have the type `wanted`.
    #[cold]
    #[inline(never)]
    pub fn mismatch(wanted: &str, found: &Value) -> Self {
        Self::new(match found {
            Value::Null => format!("must be {wanted}, not null"),
            Value::Bool(value) => format!("must be {wanted}, not boolean `{value}`"),
            Value::Number(number) if number.is_f64() => format!("must be {wanted}, not floating point `{number}`"),
            Value::Number(number) => format!("must be {wanted}, not integer `{number}`"),
            Value::String(text) => format!("must be {wanted}, not string \"{}\"", crate::shown(text, crate::SHOWN)),
            Value::Array(_) => format!("must be {wanted}, not a list"),
            Value::Object(_) => format!("must be {wanted}, not an object"),
        })
    }

    /// Adds the member `name` of the enclosing object to the path.
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn in_member(mut self, name: &str) -> Self {
        self.0.segments.push(Segment::Key(name.to_owned()));
        self
    }

    /// Adds the item `index` of the enclosing list to the path.
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn in_item(mut self, index: usize) -> Self {
        self.0.segments.push(Segment::Index(index));
        self
    }

    /// Returns the path from the decoded value to the wrong value.
    pub fn path(&self) -> Path {
        self.0.segments.iter().rev().fold(Path::default(), |path, segment| match segment {
            Segment::Key(name) => path.key(name),
            Segment::Index(index) => path.index(*index),
        })
    }

    /// Returns the message.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.path(), self.message())
    }
}

impl core::error::Error for Error {}
