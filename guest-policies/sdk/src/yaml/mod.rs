//! YAML text to JSON values: one document, core schema, anchors and merge keys, all of it bounded.
//!
//! The parser costs a component about 95 KB (33 KB compressed), so it is behind the feature `yaml`; a
//! component that does not call it does not carry it. What numbers and booleans look like is in `scalar`.

mod scalar;

use alloc::{borrow::ToOwned, string::String, vec::Vec};
use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value};

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
    Syntax(String),
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
    #[error("the key {0:?} is there twice; remove one")]
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
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let problem = Problem::Syntax(error.info().to_owned());
            Error { line: error.marker().line(), column: error.marker().col() + 1, problem }
        })?;
        let (line, column) = (span.start.line(), span.start.col() + 1);
        builder.event(event).map_err(|problem| Error { line, column, problem })?;
    }
    Ok(builder.document.unwrap_or_default())
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    document: Option<Value>,
    /// By anchor number: what aliases stand for, and how much that is.
    anchors: Vec<(usize, Value, usize)>,
    aliased: usize,
}

/// A list or object under construction.
struct Open {
    anchor: usize,
    content: Content,
}

enum Content {
    List(Vec<Value>),
    Object { members: Map<String, Value>, key: Option<Key>, merges: Vec<Value> },
}

enum Key {
    Name(String),
    Merge,
}

impl Builder {
    fn event(&mut self, event: Event<'_>) -> Result<(), Problem> {
        match event {
            Event::DocumentStart(_) if self.document.is_some() => Err(Problem::SecondDocument),
            Event::SequenceStart(anchor, _) => self.open(anchor, Content::List(Vec::new())),
            Event::MappingStart(anchor, _) => {
                let content = Content::Object { members: Map::new(), key: None, merges: Vec::new() };
                self.open(anchor, content)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Scalar(text, style, anchor, tag) => {
                let plain = matches!(style, ScalarStyle::Plain);
                let tag = tag.as_deref().filter(|tag| tag.is_yaml_core_schema()).map(|tag| tag.suffix.as_str());
                if let Some(Open { content: Content::Object { key: key @ None, .. }, .. }) = self.open.last_mut() {
                    let merge = plain && text == "<<";
                    *key = Some(if merge { Key::Merge } else { Key::Name(text.into_owned()) });
                    return Ok(());
                }
                let value = scalar::resolve(&text, plain, tag);
                self.put(anchor, value)
            }
            Event::Alias(anchor) => {
                let known = self.anchors.iter().rev().find(|(known, ..)| *known == anchor);
                let (_, value, size) = known.ok_or(Problem::UnknownAlias)?;
                self.aliased = self.aliased.saturating_add(*size);
                if self.aliased > MAX_ALIASED {
                    return Err(Problem::TooManyAliases);
                }
                let value = value.clone();
                self.put(0, value)
            }
            _ => Ok(()),
        }
    }

    fn open(&mut self, anchor: usize, content: Content) -> Result<(), Problem> {
        if let Some(Open { content: Content::Object { key: None, .. }, .. }) = self.open.last() {
            return Err(Problem::ComplexKey);
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(Problem::TooDeep);
        }
        self.open.push(Open { anchor, content });
        Ok(())
    }

    fn close(&mut self) -> Result<(), Problem> {
        let Some(Open { anchor, content }) = self.open.pop() else { return Ok(()) };
        let value = match content {
            Content::List(items) => Value::Array(items),
            Content::Object { mut members, merges, .. } => {
                for merged in merges {
                    merge(&mut members, merged)?;
                }
                Value::Object(members)
            }
        };
        self.put(anchor, value)
    }

    /// Puts a complete value where it belongs.
    fn put(&mut self, anchor: usize, value: Value) -> Result<(), Problem> {
        if anchor != 0 {
            self.anchors.push((anchor, value.clone(), size(&value)));
            self.aliased = self.aliased.saturating_add(size(&value));
            if self.aliased > MAX_ALIASED {
                return Err(Problem::TooManyAliases);
            }
        }
        match self.open.last_mut().map(|open| &mut open.content) {
            None => self.document = Some(value),
            Some(Content::List(items)) => items.push(value),
            Some(Content::Object { members, key, merges }) => match key.take() {
                Some(Key::Merge) => merges.push(value),
                Some(Key::Name(name)) if members.contains_key(&name) => return Err(Problem::DuplicateKey(name)),
                Some(Key::Name(name)) => {
                    members.insert(name, value);
                }
                None => return Err(Problem::ComplexKey),
            },
        }
        Ok(())
    }
}

/// Members of `from` that are not there yet; of a list, the first object wins.
fn merge(members: &mut Map<String, Value>, from: Value) -> Result<(), Problem> {
    match from {
        Value::Object(from) => {
            for (key, value) in from {
                members.entry(key).or_insert(value);
            }
            Ok(())
        }
        Value::Array(list) => list.into_iter().try_for_each(|item| match item {
            Value::Object(_) => merge(members, item),
            _ => Err(Problem::BadMerge),
        }),
        _ => Err(Problem::BadMerge),
    }
}

fn size(value: &Value) -> usize {
    1 + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(map) => map.iter().map(|(key, value)| key.len() + size(value)).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
