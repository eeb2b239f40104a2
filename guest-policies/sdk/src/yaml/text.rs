//! Reads plain texts, quoted texts, and block texts.

use super::Problem;
use super::cursor::{is_flow, is_gap};
use super::reader::Reader;
use alloc::string::String;

const NOT_CLOSED: Problem = Problem::Syntax("the text ends before this quote is closed");
const NO_ESCAPE: Problem = Problem::Syntax("a backslash in double quotes must begin an escape of YAML");

/// Appends the folded form of line breaks: a space for one break, and `breaks - 1` newlines for several breaks.
fn fold(text: &mut String, breaks: usize) {
    if breaks == 1 {
        text.push(' ');
    }
    (1..breaks).for_each(|_| text.push('\n'));
}

impl Reader<'_> {
    /// Reads a text without quotes. The text continues on all lines with more indentation than `parent`.
    pub(super) fn plain(&mut self, parent: isize, in_flow: bool) -> Result<String, Problem> {
        let cursor = &mut self.cursor;
        let ends_at = |byte: u8, next: u8| {
            (in_flow && is_flow(byte)) || (byte == b':' && (is_gap(next) || (in_flow && is_flow(next))))
        };
        let first = cursor.peek();
        let indicator =
            matches!(first, b'-' | b'?') && (is_gap(cursor.ahead(1)) || (in_flow && is_flow(cursor.ahead(1))));
        if indicator && first == b'-' && in_flow {
            return Err(Problem::Syntax("\"-\" is only valid inside a block"));
        }
        if indicator || ends_at(first, cursor.ahead(1)) || b",[]{}#&*!'\"%@`".contains(&first) {
            return Err(Problem::Syntax("a text cannot begin with this character: put it into quotes"));
        }
        let mut text = String::new();
        loop {
            let start = cursor.at();
            let mut end = *cursor;
            loop {
                let byte = cursor.peek();
                let is_comment = byte == b'#' && end.at() < cursor.at();
                if matches!(byte, 0 | b'\n' | b'\r') || is_comment || ends_at(byte, cursor.ahead(1)) {
                    break;
                }
                cursor.skip(1);
                if !is_gap(byte) {
                    end = *cursor;
                }
            }
            text.push_str(end.since(start));
            let breaks = cursor.line_breaks();
            let (byte, next) = (cursor.peek(), cursor.ahead(1));
            let over = breaks == 0
                || matches!(byte, 0 | b'#')
                || cursor.marker()
                || (!in_flow && cursor.column() <= parent)
                || (in_flow && ends_at(byte, next));
            if over {
                *cursor = end;
                return Ok(text);
            }
            fold(&mut text, breaks);
        }
    }

    /// Reads a text in single or double quotes.
    pub(super) fn quoted(&mut self) -> Result<String, Problem> {
        let open = self.cursor;
        let quote = open.peek();
        self.cursor.skip(1);
        let mut text = String::new();
        // The reader trims the end of each line, but keeps whitespace that an escape produced.
        let mut kept = 0;
        loop {
            let cursor = &mut self.cursor;
            let start = cursor.at();
            while !matches!(cursor.peek(), 0 | b'\n' | b'\r' | b'\\' | b'\'' | b'"') {
                cursor.skip(1);
            }
            text.push_str(cursor.since(start));
            let byte = cursor.peek();
            if byte == 0 || cursor.marker() {
                *cursor = open;
                return Err(NOT_CLOSED);
            }
            if matches!(byte, b'\n' | b'\r') {
                while text.len() > kept && text.ends_with([' ', '\t']) {
                    text.pop();
                }
                let breaks = cursor.line_breaks();
                fold(&mut text, breaks);
                continue;
            }
            cursor.skip(1);
            if byte == quote {
                if quote == b'"' || cursor.peek() != b'\'' {
                    return Ok(text);
                }
                cursor.skip(1);
                text.push('\'');
            } else if byte == b'\\' && quote == b'"' {
                let breaks = cursor.line_breaks();
                if breaks == 0 {
                    text.push(self.escape()?);
                } else {
                    (1..breaks).for_each(|_| text.push('\n'));
                }
                kept = text.len();
            } else {
                text.push(char::from(byte));
            }
        }
    }

    /// Reads the escape after a backslash. Returns the character that the escape represents.
    fn escape(&mut self) -> Result<char, Problem> {
        let byte = self.cursor.peek();
        self.cursor.skip(1);
        Ok(match byte {
            b'0' => '\0',
            b'a' => '\x07',
            b'b' => '\x08',
            b't' | b'\t' => '\t',
            b'n' => '\n',
            b'v' => '\x0b',
            b'f' => '\x0c',
            b'r' => '\r',
            b'e' => '\x1b',
            b' ' | b'"' | b'/' | b'\\' => char::from(byte),
            b'N' => '\u{85}',
            b'_' => '\u{a0}',
            b'L' => '\u{2028}',
            b'P' => '\u{2029}',
            b'x' | b'u' | b'U' => {
                let digits = match byte {
                    b'x' => 2,
                    b'u' => 4,
                    _ => 8,
                };
                let mut code = self.hexadecimal(digits)?;
                // JSON writes characters beyond 16 bits as a surrogate pair.
                if (0xd800..0xdc00).contains(&code) && self.cursor.peek() == b'\\' && self.cursor.ahead(1) == b'u' {
                    self.cursor.skip(2);
                    let low = self.hexadecimal(4)?;
                    code = 0x1_0000 + ((code - 0xd800) << 10) + (low.wrapping_sub(0xdc00) & 0x3ff);
                }
                char::from_u32(code).ok_or(NO_ESCAPE)?
            }
            _ => return Err(NO_ESCAPE),
        })
    }

    fn hexadecimal(&mut self, digits: usize) -> Result<u32, Problem> {
        let mut code = 0_u32;
        for _ in 0..digits {
            let digit = char::from(self.cursor.peek()).to_digit(16).ok_or(NO_ESCAPE)?;
            code = code << 4 | digit;
            self.cursor.skip(1);
        }
        Ok(code)
    }

    /// Reads a block text after `|` or `>`. The lines of the text have more indentation than `parent`.
    pub(super) fn block_text(&mut self, parent: isize) -> Result<String, Problem> {
        let cursor = &mut self.cursor;
        let folded = cursor.peek() == b'>';
        cursor.skip(1);
        let (mut chomp, mut indentation) = (0, None);
        loop {
            match cursor.peek() {
                sign @ (b'+' | b'-') if chomp == 0 => chomp = sign,
                digit @ b'1'..=b'9' if indentation.is_none() => {
                    indentation = Some(parent.max(0) + isize::from((digit - b'0').cast_signed()));
                }
                _ => break,
            }
            cursor.skip(1);
        }
        let header = cursor.at();
        cursor.blanks();
        if cursor.peek() == b'#' && cursor.at() > header {
            cursor.skip_line();
        }
        if !cursor.line_break() && cursor.peek() != 0 {
            return Err(Problem::Syntax(
                "after `|` or `>`, write at most one sign (`-` or `+`) and one digit for the indentation",
            ));
        }
        let mut text = String::new();
        let (mut breaks, mut was_deeper, mut any) = (0, true, false);
        loop {
            let start = *cursor;
            while cursor.peek() == b' ' && indentation.is_none_or(|wanted| cursor.column() < wanted) {
                cursor.skip(1);
            }
            if cursor.line_break() {
                breaks += 1;
                continue;
            }
            let column = cursor.column();
            let wanted = *indentation.get_or_insert(column.max(parent + 1));
            if cursor.peek() == 0 || column < wanted || cursor.marker() {
                *cursor = start;
                break;
            }
            let deeper = matches!(cursor.peek(), b' ' | b'\t');
            if any && folded && !deeper && !was_deeper {
                fold(&mut text, breaks);
            } else {
                (0..breaks).for_each(|_| text.push('\n'));
            }
            text.push_str(cursor.skip_line());
            (any, was_deeper) = (true, deeper);
            cursor.line_break();
            // The end of the input also ends the line.
            breaks = 1;
        }
        match chomp {
            b'-' => {}
            b'+' => (0..breaks).for_each(|_| text.push('\n')),
            _ if any => text.push('\n'),
            _ => {}
        }
        Ok(text)
    }
}
