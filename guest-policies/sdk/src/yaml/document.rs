//! Reads a complete text: directives, one document, and the end.

use super::Problem;
use super::block::TokenBefore;
use super::reader::Reader;
use serde_json::Value;

impl Reader<'_> {
    pub(super) fn document(&mut self) -> Result<Value, Problem> {
        let cursor = &mut self.cursor;
        cursor.space();
        let directives = cursor.peek() == b'%';
        while cursor.peek() == b'%' {
            cursor.skip_line();
            cursor.space();
        }
        let value = if cursor.marker() && cursor.peek() == b'-' {
            cursor.skip(3);
            self.block(-1, TokenBefore::Marker)?
        } else if directives {
            return Err(Problem::Syntax("directives need a line with --- after them"));
        } else {
            self.block(-1, TokenBefore::Entry)?
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
            _ => Err(Problem::Syntax("this does not belong to the value before it: check the indentation")),
        }
    }
}
