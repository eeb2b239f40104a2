//! YAML text to JSON values: one document, core schema, anchors and merge keys, all of it bounded.
//!
//! A component has to be small, and events, spans and a choice of inputs are most of a parser for everybody: this one
//! goes down the text once and makes the value on its way. What is in it: `block` has the structure that indentation
//! makes, `flow` that of brackets, `text` the ways to write a text, `node` anchors, tags and keys, and `scalar` what
//! numbers and booleans look like. That it reads what others read is tested against one of them.
//!
//! Of tags, those of the core schema under `!!` count; others say nothing about JSON.

mod anchors;
mod block;
mod cursor;
mod document;
mod error;
mod flow;
mod node;
mod reader;
mod scalar;
mod text;

use serde_json::Value;

pub use error::{Error, MAX_ALIASED, MAX_DEPTH, Problem};

use anchors::Anchors;
use cursor::Cursor;
use reader::{Reader, Scalar};

/// The one document in `text`; an empty text is null.
pub fn parse(text: &str) -> Result<Value, Error> {
    read(text, scalar::resolve)
}

/// As [`parse`], but what looks like a number or a boolean is the text that it is written as: for documents that have
/// texts only, in which `1.10` is no other way to write `1.1`.
pub fn parse_texts(text: &str) -> Result<Value, Error> {
    read(text, scalar::as_text)
}

fn read(text: &str, scalar: Scalar) -> Result<Value, Error> {
    let mut reader = Reader { cursor: Cursor::new(text), anchors: Anchors::default(), depth: 0, scalar };
    reader.document().map_err(|problem| {
        let (line, column) = reader.cursor.place();
        Error { line, column, problem }
    })
}

#[cfg(test)]
mod against;
#[cfg(test)]
mod tests;
