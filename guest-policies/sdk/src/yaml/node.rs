//! Reads anchors, tags and keys, and builds values from them.

use super::Problem;
use super::cursor::{is_flow, is_gap};
use super::reader::Reader;
use alloc::{string::String, vec::Vec};
use serde_json::{Map, Value};

/// The anchor and the tag before a value.
#[derive(Clone, Copy, Default)]
pub(super) struct Properties<'a> {
    anchor: Option<&'a str>,
    tag: Option<&'a str>,
}

impl Properties<'_> {
    pub(super) fn are_none(&self) -> bool {
        self.anchor.is_none() && self.tag.is_none()
    }

    /// Returns these properties. Takes missing properties from `others`.
    pub(super) fn or(self, others: Self) -> Self {
        Self { anchor: self.anchor.or(others.anchor), tag: self.tag.or(others.tag) }
    }
}

/// A value or a key. A colon follows each key.
pub(super) enum Atom {
    Text(String),
    /// A text without quotes, possibly a number or a boolean.
    Plain(String),
    Value(Value),
}

impl Atom {
    /// Returns the atom for an absent value.
    pub(super) fn nothing() -> Self {
        Self::Plain(String::new())
    }
}

impl<'a> Reader<'a> {
    /// Reads anchors and tags. After each anchor or tag, skips the whitespace on the line.
    pub(super) fn properties(&mut self) -> Result<Properties<'a>, Problem> {
        let mut found = Properties::default();
        loop {
            let mark = self.cursor.peek();
            let place = match mark {
                b'&' => &mut found.anchor,
                b'!' => &mut found.tag,
                _ => return Ok(found),
            };
            self.cursor.skip(1);
            let name = name(&mut self.cursor);
            if place.is_some() || (mark == b'&' && name.is_empty()) {
                return Err(Problem::Syntax("a value can have at most one anchor and one tag, each with a name"));
            }
            *place = Some(name);
            self.cursor.blanks();
        }
    }

    /// Returns the value to which an alias refers.
    pub(super) fn alias(&mut self) -> Result<Atom, Problem> {
        self.cursor.skip(1);
        let name = name(&mut self.cursor);
        self.anchors.get(name).map(Atom::Value)
    }

    /// Turns `atom` into a value. Stores the value if it has an anchor.
    pub(super) fn value(&mut self, properties: Properties<'a>, atom: Atom) -> Result<Value, Problem> {
        // Tags that begin with `!!` belong to the core schema. Ignore any other tag.
        let tag = properties.tag.and_then(|tag| tag.strip_prefix('!'));
        let value = match atom {
            Atom::Text(text) => (self.scalar)(&text, false, tag),
            Atom::Plain(text) => (self.scalar)(&text, true, tag),
            Atom::Value(value) => value,
        };
        if let Some(name) = properties.anchor {
            self.anchors.set(name, &value)?;
        }
        Ok(value)
    }
}

/// Reads the name of an anchor, an alias or a tag.
fn name<'a>(cursor: &mut super::Cursor<'a>) -> &'a str {
    let start = cursor.at();
    let verbatim = cursor.peek() == b'<';
    while !is_gap(cursor.peek()) && (verbatim || !is_flow(cursor.peek())) {
        cursor.skip(1);
    }
    cursor.since(start)
}

/// The members of an object under construction.
#[derive(Default)]
pub(super) struct Members {
    map: Map<String, Value>,
    merges: Vec<Value>,
}

impl Members {
    pub(super) fn put(&mut self, key: Atom, value: Value) -> Result<(), Problem> {
        let name = match key {
            Atom::Plain(text) if text == "<<" => {
                self.merges.push(value);
                return Ok(());
            }
            Atom::Plain(text) | Atom::Text(text) => text,
            Atom::Value(_) => return Err(Problem::ComplexKey),
        };
        if self.map.contains_key(&name) {
            return Err(Problem::DuplicateKey(name));
        }
        self.map.insert(name, value);
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Value, Problem> {
        for from in self.merges {
            merge(&mut self.map, from)?;
        }
        Ok(Value::Object(self.map))
    }
}

/// Adds the members of `from` that `members` lacks. If `from` is a list of objects, earlier objects win.
fn merge(members: &mut Map<String, Value>, from: Value) -> Result<(), Problem> {
    match from {
        Value::Object(from) => {
            for (key, value) in from {
                if !members.contains_key(&key) {
                    members.insert(key, value);
                }
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
