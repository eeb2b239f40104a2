//! Reads lists and objects that are structured by brackets.

use super::Problem;
use super::cursor::{is_flow, is_gap};
use super::node::{Atom, Members, Properties};
use super::reader::Reader;
use alloc::vec::Vec;
use serde_json::Value;

const NO_COMMA: Problem = Problem::Syntax("between brackets, a comma must stand between two entries");
const NOT_CLOSED: Problem = Problem::Syntax("the text ends before this bracket is closed");

/// An item between two commas: a value, or a key with its value.
struct Entry<'a> {
    properties: Properties<'a>,
    atom: Atom,
    value: Option<Value>,
}

impl<'a> Reader<'a> {
    pub(super) fn flow_list(&mut self) -> Result<Value, Problem> {
        let mut items = Vec::new();
        self.entries(b']', |reader, entry| {
            items.push(match entry.value {
                None => reader.value(entry.properties, entry.atom)?,
                Some(value) => {
                    let mut members = Members::default();
                    members.put(entry.atom, value)?;
                    members.finish()?
                }
            });
            Ok(())
        })?;
        Ok(Value::Array(items))
    }

    pub(super) fn flow_object(&mut self) -> Result<Value, Problem> {
        let mut members = Members::default();
        self.entries(b'}', |_, entry| members.put(entry.atom, entry.value.unwrap_or_default()))?;
        members.finish()
    }

    fn entries(
        &mut self,
        end: u8,
        mut each: impl FnMut(&mut Self, Entry<'a>) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        self.enter()?;
        let open = self.cursor;
        self.cursor.skip(1);
        loop {
            self.cursor.space();
            if self.cursor.peek() != end {
                if self.cursor.peek() == 0 || self.cursor.marker() {
                    self.cursor = open;
                    return Err(NOT_CLOSED);
                }
                let entry = self.entry()?;
                each(self, entry)?;
                self.cursor.space();
                if self.cursor.peek() == b',' {
                    self.cursor.skip(1);
                    continue;
                }
            }
            if self.cursor.peek() == end {
                self.cursor.skip(1);
                self.depth -= 1;
                return Ok(());
            }
            if self.cursor.peek() != 0 {
                return Err(NO_COMMA);
            }
        }
    }

    fn entry(&mut self) -> Result<Entry<'a>, Problem> {
        let start = self.cursor.at();
        let explicit = self.cursor.indicator(b'?');
        if explicit {
            self.cursor.skip(1);
            self.cursor.space();
        }
        let (properties, atom) = self.flow_node()?;
        self.cursor.space();
        // After a quote or a bracket, a colon needs no whitespace behind it.
        let next = self.cursor.ahead(1);
        let is_pair = self.cursor.peek() == b':' && (!matches!(atom, Atom::Plain(_)) || is_gap(next) || is_flow(next));
        if !is_pair {
            if self.cursor.at() == start {
                return Err(Problem::Syntax("a value is missing between two commas"));
            }
            return Ok(Entry { properties, atom, value: explicit.then_some(Value::Null) });
        }
        self.cursor.skip(1);
        self.cursor.space();
        let (of_value, value) = self.flow_node()?;
        let value = self.value(of_value, value)?;
        Ok(Entry { properties, atom, value: Some(value) })
    }

    fn flow_node(&mut self) -> Result<(Properties<'a>, Atom), Problem> {
        let mut properties = self.properties()?;
        self.cursor.space();
        if !properties.are_none() {
            properties = properties.or(self.properties()?);
            self.cursor.space();
        }
        let (byte, next) = (self.cursor.peek(), self.cursor.ahead(1));
        let nothing = matches!(byte, 0 | b',' | b']' | b'}') || (byte == b':' && (is_gap(next) || is_flow(next)));
        let atom = if nothing { Atom::nothing() } else { self.atom(-1, true)? };
        Ok((properties, atom))
    }
}
