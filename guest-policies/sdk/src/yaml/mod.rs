//! Converts YAML text to JSON values. A text contains one document in the core schema, with anchors and merge keys.
//! Nesting and aliases have limits.
//!
//! A component must be small. A general parser mostly consists of code for events, spans and different inputs. This
//! reader goes through the text once and builds the value directly. A test compares its results with those of a general
//! parser.
//!
//! The modules:
//!
//! - `document` reads a complete text;
//! - `block` reads lists and objects that are structured by indentation;
//! - `flow` reads lists and objects in brackets;
//! - `text` reads plain, quoted and block texts;
//! - `node` reads anchors, tags and keys; `anchors` stores the anchored values;
//! - `scalar` recognizes numbers and booleans.
//!
//! Only tags of the core schema (`!!`) have an effect. The reader ignores all other tags, because JSON has no
//! equivalent of tags.

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

/// Parses the only document in `text`. An empty text becomes null.
pub fn parse(text: &str) -> Result<Value, Error> {
    read(text, scalar::resolve)
}

/// Like [`parse`], but keeps numbers and booleans as the text in the document. Use this function if all values are
/// texts, so that `1.10` does not become `1.1`.
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
