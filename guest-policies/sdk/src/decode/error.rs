//! What serde says is wrong, in words for somebody who writes YAML, and where.

use crate::path::Path;
use serde::de::{self, Expected, Unexpected};
use std::fmt::{self, Display};

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// From the innermost to the outermost.
    segments: Vec<Segment>,
    message: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    Key(String),
    Index(usize),
}

impl Error {
    /// Where, from the value that was decoded.
    pub fn path(&self) -> Path {
        self.segments.iter().rev().fold(Path::default(), |path, segment| match segment {
            Segment::Key(name) => path.key(name),
            Segment::Index(index) => path.index(*index),
        })
    }

    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.message
    }

    pub(super) fn within(mut self, segment: Segment) -> Self {
        self.segments.push(segment);
        self
    }

    pub(super) fn new(message: String) -> Self {
        Self { segments: Vec::new(), message }
    }
}

impl Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.path(), self.message)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::new(format!("must be {}, not {found}", in_words(wanted)))
    }

    fn invalid_value(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        Self::invalid_type(found, wanted)
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new("is required".to_owned()).within(Segment::Key(field.to_owned()))
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        let message = format!("is no known field; known are {}", known.join(", "));
        Self::new(message).within(Segment::Key(field.to_owned()))
    }

    fn unknown_variant(found: &str, known: &'static [&'static str]) -> Self {
        Self::new(format!("must be one of {}, not {found:?}", known.join(", ")))
    }
}

/// What serde wants, in the words of somebody who writes YAML.
pub(super) fn in_words(wanted: &dyn Expected) -> String {
    let wanted = wanted.to_string();
    let range = |from: &dyn Display, to: &dyn Display| format!("a whole number from {from} to {to}");
    match wanted.as_str() {
        "a map" => "an object".to_owned(),
        "a sequence" => "a list".to_owned(),
        "i32" => range(&i32::MIN, &i32::MAX),
        "u16" => range(&u16::MIN, &u16::MAX),
        "u32" => range(&u32::MIN, &u32::MAX),
        "i64" | "u64" | "usize" => "a whole number".to_owned(),
        other if other.starts_with("struct ") => "an object".to_owned(),
        _ => wanted,
    }
}
