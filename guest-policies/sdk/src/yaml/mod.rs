//! YAML text to JSON values: one document, core schema, anchors and merge keys, all of it bounded.
//!
//! A component has to be small, and events, spans and a choice of inputs are most of a parser for everybody: this one
//! goes down the text once and makes the value on its way. What is in it: `block` has the structure that indentation
//! makes, `flow` that of brackets, `text` the ways to write a text, `node` anchors, tags and keys, and `scalar` what
//! numbers and booleans look like. That it reads what others read is tested against one of them.
//!
//! Of tags, those of the core schema under `!!` count; others say nothing about JSON.

mod block;
mod cursor;
mod flow;
mod node;
mod scalar;
mod text;

use alloc::string::String;
use serde_json::Value;

use block::Place;
use cursor::Cursor;
use node::Anchors;

/// How deep lists and objects may be nested.
pub const MAX_DEPTH: usize = 64;
/// How much aliases may add: values and bytes of text together.
pub const MAX_ALIASED: usize = 1 << 20;

/// What is wrong with a YAML text, and where. Lines and columns count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct Error {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// The kinds of mistakes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// No YAML.
    #[error("{0}")]
    Syntax(&'static str),
    /// A second document.
    #[error("there must be one document only; remove this one")]
    SecondDocument,
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("nested too deeply; at most 64 levels are read")]
    TooDeep,
    /// Aliases add more than [`MAX_ALIASED`].
    #[error("aliases repeat too much; write out what is needed")]
    TooManyAliases,
    /// An alias of something that is not complete, or not there.
    #[error("this alias has no anchor before it")]
    UnknownAlias,
    /// A key twice in one object.
    #[error("the key \"{}\" is there twice; remove one", crate::quote::shown(.0, 100))]
    DuplicateKey(String),
    /// A list or object as a key.
    #[error("a key must be plain text")]
    ComplexKey,
    /// `<<` with something else than objects.
    #[error("<< takes an object, or a list of objects")]
    BadMerge,
}

/// The one document in `text`; an empty text is null.
pub fn parse(text: &str) -> Result<Value, Error> {
    read(text, scalar::resolve)
}

/// As [`parse`], but what looks like a number or a boolean is the text that it is written as: for documents that have
/// texts only, in which `1.10` is no other way to write `1.1`.
pub fn parse_texts(text: &str) -> Result<Value, Error> {
    read(text, scalar::as_text)
}

/// What a scalar means: its text, whether it is written without quotes, and the suffix of its tag of the core schema.
type Scalar = fn(&str, bool, Option<&str>) -> Value;

fn read(text: &str, scalar: Scalar) -> Result<Value, Error> {
    let mut reader = Reader { cursor: Cursor::new(text), anchors: Anchors::default(), depth: 0, scalar };
    reader.document().map_err(|problem| {
        let (line, column) = reader.cursor.place();
        Error { line, column, problem }
    })
}

/// What is read, and what is known by now. Where it stands when something is wrong is where the mistake is.
struct Reader<'a> {
    cursor: Cursor<'a>,
    anchors: Anchors<'a>,
    /// How many lists and objects are open.
    depth: usize,
    scalar: Scalar,
}

impl Reader<'_> {
    fn document(&mut self) -> Result<Value, Problem> {
        let cursor = &mut self.cursor;
        cursor.space();
        let directives = cursor.peek() == b'%';
        while cursor.peek() == b'%' {
            cursor.skip_line();
            cursor.space();
        }
        let value = if cursor.marker() && cursor.peek() == b'-' {
            cursor.skip(3);
            self.block(-1, Place::Marker)?
        } else if directives {
            return Err(Problem::Syntax("directives need a line with --- after them"));
        } else {
            self.block(-1, Place::Entry)?
        };
        let cursor = &mut self.cursor;
        cursor.space();
        let mut ended = false;
        while cursor.marker() && cursor.peek() == b'.' {
            cursor.skip(3);
            cursor.space();
            ended = true;
        }
        match cursor.peek() {
            0 => Ok(value),
            _ if ended || cursor.marker() => Err(Problem::SecondDocument),
            _ => Err(Problem::Syntax("this is no part of the value before it: check the indentation")),
        }
    }

    /// One list or object more is open.
    fn enter(&mut self) -> Result<(), Problem> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(Problem::TooDeep) } else { Ok(()) }
    }
}

#[cfg(test)]
mod against;
#[cfg(test)]
mod tests;
