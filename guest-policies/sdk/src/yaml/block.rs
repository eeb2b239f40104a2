//! Reads lists and objects that are structured by indentation.

use super::Problem;
use super::node::{Atom, Members, Properties};
use super::reader::Reader;
use alloc::vec::Vec;
use serde_json::Value;

/// The token before a value. This token decides where a list or an object can begin.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum TokenBefore {
    /// The token before the value is `- ` or `? `, or the value is at the start of the document. A list or an object
    /// can begin on the same line.
    Entry,
    /// `---`. A list or an object can begin only on the next line.
    Marker,
    /// `key:`. A list can have the same indentation as the key.
    Member,
}

const UNEXPECTED: Problem = Problem::Syntax("no text may follow a value on its line");
const NO_STRUCTURE: Problem = Problem::Syntax("a list or an object must begin on a line of its own here");
const NO_KEY: Problem = Problem::Syntax("a key must follow here, with a colon and a space");
const TABS: Problem = Problem::Syntax("indent with spaces, not with tabs");
const INDENTATION: Problem = Problem::Syntax("is indented more than its parent");

impl<'a> Reader<'a> {
    /// Reads the value after `place`. `parent` is the indentation of the enclosing structure.
    pub(super) fn block(&mut self, parent: isize, place: TokenBefore) -> Result<Value, Problem> {
        let (properties, atom) = self.node(parent, place)?;
        self.value(properties, atom)
    }

    fn node(&mut self, parent: isize, place: TokenBefore) -> Result<(Properties<'a>, Atom), Problem> {
        let mut own = Properties::default();
        self.cursor.space();
        loop {
            if self.is_over(parent, place) {
                return Ok((own, Atom::nothing()));
            }
            let (start, column) = (self.cursor, self.cursor.column());
            let structure = place == TokenBefore::Entry || start.begins_line();
            let found = self.properties()?;
            if found.are_none() {
                return self.content(parent, column, structure, [own, found]);
            }
            self.cursor.space();
            if self.cursor.same_line(&start) {
                return self.content(parent, column, structure, [own, found]);
            }
            own = own.or(found);
        }
    }

    /// Returns whether the enclosing list or object ends here.
    fn is_over(&self, parent: isize, place: TokenBefore) -> bool {
        let cursor = &self.cursor;
        let outside = || {
            let column = cursor.column();
            column < parent || (column == parent && !(place == TokenBefore::Member && cursor.indicator(b'-')))
        };
        cursor.peek() == 0 || cursor.marker() || (cursor.begins_line() && outside())
    }

    /// Reads a value after its properties. `own` contains the properties on earlier lines. `near` contains the
    /// properties on the value's line: if the value is an object, they belong to its first key.
    fn content(
        &mut self,
        parent: isize,
        column: isize,
        structure: bool,
        [own, near]: [Properties<'a>; 2],
    ) -> Result<(Properties<'a>, Atom), Problem> {
        let cursor = &mut self.cursor;
        let value = if cursor.indicator(b'-') || cursor.indicator(b'?') {
            if !structure {
                return Err(NO_STRUCTURE);
            }
            let list = cursor.peek() == b'-';
            let value = if list { self.list(column)? } else { self.object(column, None)? };
            Atom::Value(value)
        } else if matches!(cursor.peek(), b'|' | b'>') {
            Atom::Text(self.block_text(parent)?)
        } else {
            let start = *cursor;
            let atom = if cursor.indicator(b':') { Atom::nothing() } else { self.atom(parent, false)? };
            if self.cursor.same_line(&start) && self.is_key() {
                if !structure {
                    return Err(NO_STRUCTURE);
                }
                let object = self.object(column, Some(atom))?;
                return Ok((own, Atom::Value(object)));
            }
            atom
        };
        Ok((own.or(near), value))
    }

    /// Returns whether the atom before the cursor is a key.
    fn is_key(&mut self) -> bool {
        let end = self.cursor;
        self.cursor.blanks();
        let is_key = self.cursor.indicator(b':');
        if !is_key {
            self.cursor = end;
        }
        is_key
    }

    /// Returns whether a list or an object with the indentation `column` has another entry.
    fn goes_on(&mut self, column: isize) -> Result<bool, Problem> {
        self.cursor.space();
        if self.cursor.peek() == 0 || self.cursor.marker() {
            return Ok(false);
        }
        if !self.cursor.begins_line() {
            return Err(UNEXPECTED);
        }
        let here = self.cursor.column();
        if here > column { Err(INDENTATION) } else { Ok(here == column) }
    }

    fn list(&mut self, column: isize) -> Result<Value, Problem> {
        self.enter()?;
        let mut items = Vec::new();
        loop {
            if self.cursor.tabbed() {
                return Err(TABS);
            }
            self.cursor.skip(1);
            items.push(self.block(column, TokenBefore::Entry)?);
            if !self.goes_on(column)? || !self.cursor.indicator(b'-') {
                self.depth -= 1;
                return Ok(Value::Array(items));
            }
        }
    }

    /// Reads an object. `first` is the object's first key, if the reader has already read this key.
    fn object(&mut self, column: isize, mut first: Option<Atom>) -> Result<Value, Problem> {
        self.enter()?;
        let mut members = Members::default();
        loop {
            if self.cursor.tabbed() {
                return Err(TABS);
            }
            let start = self.cursor;
            let key = match first.take() {
                Some(key) => key,
                None => self.key(column)?,
            };
            let value = if self.cursor.indicator(b':') {
                self.cursor.skip(1);
                self.block(column, TokenBefore::Member)?
            } else {
                Value::Null
            };
            if let Err(problem) = members.put(key, value) {
                self.cursor = start;
                return Err(problem);
            }
            if !self.goes_on(column)? {
                self.depth -= 1;
                return members.finish();
            }
        }
    }

    /// Reads a key. Stops before the colon after the key, if there is a colon.
    fn key(&mut self, column: isize) -> Result<Atom, Problem> {
        if self.cursor.indicator(b'?') {
            self.cursor.skip(1);
            let (_, key) = self.node(column, TokenBefore::Entry)?;
            self.cursor.space();
            return Ok(key);
        }
        let start = self.cursor;
        self.properties()?;
        if self.cursor.indicator(b'-') {
            return Err(NO_KEY);
        }
        let key = if self.cursor.indicator(b':') { Atom::nothing() } else { self.atom(column, false)? };
        if self.cursor.same_line(&start) && self.is_key() { Ok(key) } else { Err(NO_KEY) }
    }

    /// Reads an alias, a text, or a list or object in brackets.
    pub(super) fn atom(&mut self, parent: isize, in_flow: bool) -> Result<Atom, Problem> {
        match self.cursor.peek() {
            b'*' => self.alias(),
            b'[' => self.flow_list().map(Atom::Value),
            b'{' => self.flow_object().map(Atom::Value),
            b'"' | b'\'' => self.quoted().map(Atom::Text),
            _ => self.plain(parent, in_flow).map(Atom::Plain),
        }
    }
}
