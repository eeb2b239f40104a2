//! A position in the text, with access to the next bytes, lines and indentation. This module does not build
//! values.

/// A position in a text. After the end of the text, the cursor reads zeros, so a NUL also looks like the end.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    /// The start of the current line.
    line: usize,
}

/// Returns whether a byte separates tokens.
pub(super) const fn is_gap(byte: u8) -> bool {
    matches!(byte, 0 | b' ' | b'\t' | b'\n' | b'\r')
}

/// Returns whether a byte belongs to the syntax of lists and objects in brackets.
pub(super) const fn is_flow(byte: u8) -> bool {
    matches!(byte, b',' | b'[' | b']' | b'{' | b'}')
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Self { text, at: start, line: start }
    }

    #[inline(never)]
    pub(super) fn ahead(&self, by: usize) -> u8 {
        self.text.as_bytes().get(self.at + by).copied().unwrap_or_default()
    }

    pub(super) fn peek(&self) -> u8 {
        self.ahead(0)
    }

    pub(super) fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Returns whether this position and `other` are on one line.
    pub(super) fn same_line(&self, other: &Self) -> bool {
        self.line == other.line
    }

    /// Returns the text between `start` and this position.
    pub(super) fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Returns whether the cursor is at the indicator `byte`. An indicator is only valid before whitespace or the end
    /// of the text.
    pub(super) fn indicator(&self, byte: u8) -> bool {
        self.peek() == byte && is_gap(self.ahead(1))
    }

    /// Returns the column of this position. If the indentation contains a tab, returns the tab's column.
    pub(super) fn column(&self) -> isize {
        let before = self.since(self.line);
        let width =
            if self.begins_line() { before.bytes().take_while(|byte| *byte == b' ').count() } else { before.len() };
        width.cast_signed()
    }

    /// Returns whether only whitespace precedes this position on its line.
    pub(super) fn begins_line(&self) -> bool {
        self.since(self.line).bytes().all(is_gap)
    }

    /// Returns whether the indentation contains a tab. A list or an object must not begin after a tab.
    pub(super) fn tabbed(&self) -> bool {
        self.begins_line() && self.since(self.line).bytes().any(|byte| byte == b'\t')
    }

    /// Returns whether the cursor is at a `---` or `...` that begins a line.
    pub(super) fn marker(&self) -> bool {
        let first = self.peek();
        self.at == self.line
            && matches!(first, b'-' | b'.')
            && self.ahead(1) == first
            && self.ahead(2) == first
            && is_gap(self.ahead(3))
    }

    pub(super) fn blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\t') {
            self.at += 1;
        }
    }

    pub(super) fn line_break(&mut self) -> bool {
        match (self.peek(), self.ahead(1)) {
            (b'\r', b'\n') => self.at += 2,
            (b'\r' | b'\n', _) => self.at += 1,
            _ => return false,
        }
        self.line = self.at;
        true
    }

    /// Skips line breaks and the whitespace after them. Returns the number of breaks.
    pub(super) fn line_breaks(&mut self) -> usize {
        let mut count = 0;
        while self.line_break() {
            count += 1;
            self.blanks();
        }
        count
    }

    /// Skips to the end of the line. Returns the skipped text.
    pub(super) fn skip_line(&mut self) -> &'a str {
        let start = self.at;
        while !matches!(self.peek(), 0 | b'\n' | b'\r') {
            self.at += 1;
        }
        self.since(start)
    }

    /// Skips whitespace, comments and line breaks, up to the next token.
    pub(super) fn space(&mut self) {
        loop {
            self.blanks();
            let before = self.text.as_bytes().get(self.at.wrapping_sub(1));
            if self.peek() == b'#' && before.copied().is_none_or(is_gap) {
                self.skip_line();
            }
            if !self.line_break() {
                return;
            }
        }
    }

    /// Returns the line and the column. The first line and the first column have the number 1.
    pub(super) fn place(&self) -> (usize, usize) {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        let lines = before.bytes().filter(|byte| *byte == b'\n').count();
        (lines + 1, self.since(self.line).chars().count() + 1)
    }
}
