//! Finds the functions that Python source defines at top level. If `params` contains a server's source, these functions
//! are the server's tools.
//!
//! This module is a scanner, not a parser. The scanner follows strings, brackets, comments and line continuations just
//! enough to find the statements that begin in column zero. If the text is not Python, the list of functions can be
//! wrong, but the scanner never fails. [`crate::assess`] uses the list.

use alloc::{borrow::ToOwned, string::String, vec::Vec};

/// The maximum number of names. A longer list in a status has no use.
const MAX_NAMES: usize = 500;

/// Returns the names of the functions defined at top level, in order and without duplicates.
pub(crate) fn top_level_functions(source: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut scanner = Scanner { rest: source.strip_prefix('\u{feff}').unwrap_or(source) };
    while !scanner.rest.is_empty() && names.len() < MAX_NAMES {
        if let Some(name) = defined_name(scanner.rest)
            && !names.iter().any(|known| known == name)
        {
            names.push(name.to_owned());
        }
        scanner.skip_statement();
    }
    names
}

/// Returns the name after `def` or `async def`, or `None` if the statement is not a function definition.
fn defined_name(statement: &str) -> Option<&str> {
    let after_async = keyword(statement, "async").unwrap_or(statement);
    let name = keyword(after_async, "def")?;
    let end = name.find(|c: char| !(c == '_' || c.is_ascii_alphanumeric() || !c.is_ascii())).unwrap_or(name.len());
    let (name, after) = name.split_at(end);
    let is_name = name.chars().next().is_some_and(|first| !first.is_ascii_digit());
    (is_name && after.trim_start_matches([' ', '\t']).starts_with(['(', '['])).then_some(name)
}

/// Returns the text after `word` and the blanks that follow. Returns `None` if `text` does not begin with `word` and a
/// blank.
fn keyword<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let after = text.strip_prefix(word)?;
    let trimmed = after.trim_start_matches([' ', '\t']);
    (trimmed.len() < after.len()).then_some(trimmed)
}

struct Scanner<'a> {
    rest: &'a str,
}

impl Scanner<'_> {
    /// Skips the rest of the logical line. A newline in brackets, in a triple-quoted string or after a backslash does
    /// not end the logical line.
    fn skip_statement(&mut self) {
        let mut depth = 0_usize;
        while let Some(c) = self.take() {
            match c {
                '\n' if depth == 0 => return,
                '#' => self.skip_comment(),
                '"' | '\'' => self.skip_string(c),
                '\\' => self.skip_escaped(),
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn take(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = self.rest.get(c.len_utf8()..).unwrap_or_default();
        Some(c)
    }

    /// Skips one character, or both characters of a Windows line ending.
    fn skip_escaped(&mut self) {
        if self.take() == Some('\r') && self.rest.starts_with('\n') {
            self.take();
        }
    }

    /// Skips the rest of a comment. Stops before the newline, because the newline ends the statement.
    fn skip_comment(&mut self) {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        self.rest = self.rest.get(end..).unwrap_or_default();
    }

    /// Skips a string with its closing quote. An unclosed string without triple quotes ends with its line.
    fn skip_string(&mut self, quote: char) {
        let mut doubled = [quote; 2].iter().collect::<String>();
        let triple = self.rest.starts_with(&doubled);
        if triple {
            self.rest = self.rest.get(doubled.len()..).unwrap_or_default();
        }
        doubled.push(quote);
        loop {
            if triple && self.rest.starts_with(&doubled) {
                self.rest = self.rest.get(doubled.len()..).unwrap_or_default();
                return;
            }
            if !triple && self.rest.starts_with('\n') {
                return;
            }
            match self.take() {
                None => return,
                Some('\\') => self.skip_escaped(),
                Some(c) if c == quote && !triple => return,
                Some(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn functions_at_top_level_are_tools_in_their_order() {
        let source = "import os\n\ndef echo(message: str) -> str:\n    \"\"\"Echo.\"\"\"\n    return message\n\n\
                      async  def\tfetch (url): pass\n@cached\ndef third[T](x: T): ...\n";
        assert_eq!(top_level_functions(source), ["echo", "fetch", "third"]);
    }

    #[test]
    fn methods_nested_functions_and_lambdas_are_no_tools() {
        let source = "class A:\n    def method(self): pass\n\ndef outer():\n    def inner(): pass\nx = lambda: 1\n";
        assert_eq!(top_level_functions(source), ["outer"]);
    }

    #[test]
    fn text_in_strings_brackets_and_comments_is_not_code() {
        let source = concat!(
            "doc = '''\ndef in_string(): pass\n'''\n",
            "raw = r\"\"\"\\\"\"\"\ndef still_in_string(): pass\n\"\"\"\n",
            "x = [\ndef in_brackets(): pass\n]\n",
            "y = 1 + \\\ndef continued(): pass\n",
            "# def commented(): pass ''' (\n",
            "s = 'it\\'s ( '\n",
            "empty = ''\n",
            "def real(a='(', b=\")\"): pass\n",
        );
        assert_eq!(top_level_functions(source), ["real"]);
    }

    #[test]
    fn a_function_defined_twice_is_one_tool() {
        assert_eq!(top_level_functions("def a(): pass\ndef b(): pass\ndef a(): pass"), ["a", "b"]);
    }

    #[test]
    fn words_that_only_look_like_definitions_are_no_tools() {
        let source =
            "define(x)\ndef\ndef 1a(): pass\ndef b: pass\nasync def(): pass\ndefault = 1\nasyncdef c(): pass\n";
        assert_eq!(top_level_functions(source), Vec::<String>::new());
    }

    #[test]
    fn windows_line_ends_and_a_byte_order_mark_do_not_matter() {
        let source = "\u{feff}def a():\r\n    pass\r\nx = 1 \\\r\n  + 2\r\ndef b(): pass\r\n";
        assert_eq!(top_level_functions(source), ["a", "b"]);
    }

    #[test]
    fn an_unclosed_string_ends_with_its_line() {
        assert_eq!(top_level_functions("x = 'open\ndef a(): pass\n"), ["a"]);
    }

    #[test]
    fn a_list_of_thousands_is_cut() {
        use std::fmt::Write as _;
        let mut source = String::new();
        for n in 0..2_000 {
            writeln!(source, "def f{n}(): pass").unwrap();
        }
        assert_eq!(top_level_functions(&source).len(), MAX_NAMES);
    }

    proptest! {
        #[test]
        fn any_text_gives_a_list_of_names_that_occur_in_it(source in "[\\PC\n\r\\\\\"'()#\u{feff} def]{0,200}") {
            for name in top_level_functions(&source) {
                prop_assert!(source.contains(&name));
            }
        }
    }
}
