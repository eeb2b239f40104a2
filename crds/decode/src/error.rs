//! What is wrong, in words for somebody who writes YAML, and where. The path is put together while an error
//! travels up, so that it costs nothing where there is none.

use crate::Path;
use alloc::{borrow::ToOwned, boxed::Box, string::String, vec::Vec};
use core::fmt::{self, Display};
use serde_json::Value;

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    /// From the innermost to the outermost.
    segments: Vec<Segment>,
    message: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Key(String),
    Index(usize),
}

impl Error {
    /// `message` says what is wrong with the value itself, for example `must be a list`.
    pub fn new(message: String) -> Self {
        Self(Box::new(Inner { segments: Vec::new(), message }))
    }

    /// Something else than `wanted` was found.
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

    /// The same mistake, seen from the object whose member `name` it is in.
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn in_member(mut self, name: &str) -> Self {
        self.0.segments.push(Segment::Key(name.to_owned()));
        self
    }

    /// The same mistake, seen from the list whose item number `index` it is in.
    #[cold]
    #[inline(never)]
    #[must_use]
    pub fn in_item(mut self, index: usize) -> Self {
        self.0.segments.push(Segment::Index(index));
        self
    }

    /// Where, from the value that was decoded.
    pub fn path(&self) -> Path {
        self.0.segments.iter().rev().fold(Path::default(), |path, segment| match segment {
            Segment::Key(name) => path.key(name),
            Segment::Index(index) => path.index(*index),
        })
    }

    /// What is wrong.
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
