//! Finds the secret parts of a text without knowing its format: values after secret names and secret flags, passwords
//! in URLs, private keys, and values of authorization headers.

use std::ops::Range;

use super::names::{is_plain, is_secret_flag, is_secret_in_text};

/// The minimum length of a token after `Bearer` or `Basic`, in bytes. A shorter word is probably part of a sentence.
const CREDENTIALS: usize = 8;

/// Returns the secret parts of a text, in their order. If `with_blocks` is set, the result also has each value in
/// brackets after a secret name, and the indented lines below a secret name. Set `with_blocks` for texts that no parser
/// understands.
pub(super) fn secret_parts(text: &str, with_blocks: bool) -> Vec<Range<usize>> {
    let mut found = private_keys(text);
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let whole = at..at + line.len();
        let end = at + line.trim_end_matches(['\n', '\r']).len();
        let scan = Line { text, start: whole.start, end };
        scan.urls(&mut found);
        scan.headers(&mut found);
        scan.flags(&mut found);
        scan.pairs(with_blocks, &mut found);
        at = whole.end;
    }
    merged(found)
}

fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// Returns the blocks of private keys.
fn private_keys(text: &str) -> Vec<Range<usize>> {
    const END: &str = "-----END ";
    let mut found = Vec::new();
    for (start, _) in text.match_indices("-----BEGIN ") {
        let heading = text[start..].lines().next().unwrap_or_default();
        if !heading.contains("PRIVATE KEY") {
            continue;
        }
        let end = text[start..].find(END).map_or(text.len(), |at| {
            let rest = start + at + END.len();
            text[rest..].find("-----").map_or(text.len(), |dashes| rest + dashes + 5)
        });
        found.push(start..end);
    }
    found
}

/// A line of a text.
#[derive(Clone, Copy)]
struct Line<'a> {
    text: &'a str,
    start: usize,
    end: usize,
}

/// A name in front of a separator such as `:` or `=`.
struct Named<'a> {
    name: &'a str,
    start: usize,
    is_quoted: bool,
}

impl<'a> Line<'a> {
    fn shown(self) -> &'a str {
        &self.text[self.start..self.end]
    }

    /// Returns the end of the characters from `from` on for which `is_part` returns true.
    fn run(self, from: usize, is_part: impl Fn(char) -> bool) -> usize {
        let rest = &self.text[from..self.end];
        from + rest.find(|c: char| !is_part(c)).unwrap_or(rest.len())
    }

    /// Finds the user information of URLs: `https://user:password@host`.
    fn urls(self, found: &mut Vec<Range<usize>>) {
        for (at, scheme) in self.shown().match_indices("://") {
            let start = self.start + at + scheme.len();
            let end = self.run(start, |c| !c.is_whitespace() && !matches!(c, '"' | '\'' | '<' | '>' | '`'));
            let address = &self.text[start..end];
            let authority = &address[..address.find(['/', '?', '#']).unwrap_or(address.len())];
            let port = authority.rsplit_once(':').map(|(_, port)| port);
            let has_odd_port = port.is_some_and(|port| !port.bytes().all(|byte| byte.is_ascii_digit()));
            // A password can contain `/` and `@`, although the user should encode them.
            if let Some(last) = address.rfind('@').filter(|_| authority.contains('@') || has_odd_port)
                && last > 0
            {
                found.push(start..start + last);
            }
        }
    }

    /// Finds the credentials of authorization headers: `Bearer …`.
    fn headers(self, found: &mut Vec<Range<usize>>) {
        for scheme in ["Bearer ", "bearer ", "Basic ", "basic "] {
            for (at, _) in self.shown().match_indices(scheme) {
                let start = self.start + at + scheme.len();
                let end = self.run(start, |c| c.is_ascii_alphanumeric() || "-._~+/=:!$%*".contains(c));
                let token = &self.text[start..end];
                if token.len() >= CREDENTIALS && !token.bytes().all(|byte| byte.is_ascii_lowercase()) {
                    found.push(start..end);
                }
            }
        }
    }

    /// Finds the arguments after secret flags: `--token …`.
    fn flags(self, found: &mut Vec<Range<usize>>) {
        let is_flag = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        for (at, _) in self.shown().match_indices('-') {
            let start = self.start + at;
            let before = self.text[self.start..start].chars().next_back();
            if before.is_some_and(|c| !c.is_whitespace() && !"\"'`[(,=".contains(c)) {
                continue;
            }
            let end = self.run(start, is_flag);
            let value = self.run(end, |c| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ',' | '\\'));
            if value == end || !is_secret_flag(&self.text[start..end]) {
                continue;
            }
            let between = &self.text[end..value];
            let quote = between.chars().next_back().filter(|c| !c.is_whitespace() && *c != ',');
            let end = match quote {
                Some(quote) => self.text[value..self.end].find(quote).map_or(self.end, |at| value + at),
                None => self.run(value, |c| !c.is_whitespace()),
            };
            let argument = &self.text[value..end];
            if !argument.starts_with("--") && !is_plain(argument) {
                found.push(value..end);
            }
        }
    }

    /// Finds the values of secret names: `name: …`, `name=…`, `"name": "…"`, `<name>…</name>`.
    fn pairs(self, with_blocks: bool, found: &mut Vec<Range<usize>>) {
        let mut at = self.start;
        while let Some(next) = self.text[at..self.end].find([':', '=', '>']) {
            let separator = at + next;
            at = separator + 1;
            let rest = &self.text[at..self.end];
            if rest.starts_with("//") {
                continue;
            }
            let Some(named) = self.name_before(separator) else { continue };
            if !is_secret_in_text(named.name) {
                continue;
            }
            let is_element = self.text.as_bytes()[separator] == b'>';
            if is_element && !self.text[..named.start].ends_with('<') {
                continue;
            }
            let from = at + rest.find(|c: char| !matches!(c, '=' | ':' | '>' | '~')).unwrap_or(rest.len());
            let start = self.run(from, |c| matches!(c, ' ' | '\t'));
            let end = if is_element {
                self.text[start..].find('<').map_or(self.text.len(), |at| start + at)
            } else {
                self.end_of_value(&named, separator, start, with_blocks)
            };
            let value = &self.text[start..end];
            if !is_plain(value.trim_matches(['"', '\'', '\\', ',', ' '])) {
                found.push(start..end);
            }
            at = end.clamp(at, self.end);
        }
    }

    /// Returns the name in front of a separator.
    fn name_before(self, separator: usize) -> Option<Named<'a>> {
        let before = &self.text[self.start..separator];
        let trimmed = before.trim_end_matches([' ', '\t', '"', '\'', '\\', ']', '`']);
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let start = trimmed
            .rfind(|c: char| !is_name(c))
            .map_or(0, |at| at + trimmed[at..].chars().next().map_or(1, char::len_utf8));
        let name = trimmed[start..].trim_start_matches('-');
        let is_quoted = before[trimmed.len()..].contains(['"', '\'']);
        (!name.is_empty()).then(|| Named { name, start: self.start + trimmed.len() - name.len(), is_quoted })
    }

    /// Returns the end of the value that starts at `start`.
    fn end_of_value(self, named: &Named<'_>, separator: usize, start: usize, with_blocks: bool) -> usize {
        let rest = &self.text[start..self.end];
        let slashes = rest.len() - rest.trim_start_matches('\\').len();
        if let Some(quote) = rest[slashes..].chars().next().filter(|c| matches!(c, '"' | '\'' | '`')) {
            return self.end_of_quoted(start, slashes, quote);
        }
        if rest.starts_with(['{', '[']) {
            if !with_blocks {
                return start;
            }
            return balanced(&self.text[start..]).map_or(self.end, |length| start + length);
        }
        let is_block = rest.trim().is_empty() || rest.starts_with(['|', '>']);
        if with_blocks && is_block && self.text.as_bytes()[separator] == b':' {
            return self.end_of_block();
        }
        let before = &self.text[self.start..named.start];
        // If a quote is open before the name, the value ends at the closing quote.
        let open =
            ['"', '\'', '`'].into_iter().find(|quote| !named.is_quoted && before.matches(*quote).count() % 2 == 1);
        if let Some(quote) = open
            && let Some(end) = rest.find(quote)
        {
            return start + rest[..end].trim_end_matches('\\').len();
        }
        if named.is_quoted && self.text.as_bytes()[separator] == b':' {
            return self.run(start, |c| !c.is_whitespace() && !matches!(c, ',' | '}' | ']'));
        }
        let is_first = !before.contains(char::is_alphanumeric) || before.trim() == "export";
        if self.text.as_bytes()[separator] == b':' || is_first {
            return start + rest.trim_end().len();
        }
        let word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
        let is_query = word.contains(['?', '&']);
        self.run(start, |c| !(c.is_whitespace() || is_query && c == '&'))
    }

    /// Returns the end of a quoted value, with its quotes.
    fn end_of_quoted(self, start: usize, slashes: usize, quote: char) -> usize {
        let inside = start + slashes + quote.len_utf8();
        let mut at = inside;
        while let Some(next) = self.text[at..self.end].find(quote) {
            let close = at + next;
            let content = &self.text[inside..close];
            let before = content.len() - content.trim_end_matches('\\').len();
            at = close + quote.len_utf8();
            // If no backslash precedes the opening quote, a quote after an odd number of backslashes is escaped.
            let is_close = if slashes == 0 { before.is_multiple_of(2) } else { before <= slashes };
            if !is_close {
                continue;
            }
            if self.text[at..self.end].starts_with(quote) {
                // Two quotes stand for one quote in the value.
                at += quote.len_utf8();
                continue;
            }
            return self.run(at, |c| !c.is_whitespace() && !",}])>;&\"'\\`".contains(c));
        }
        self.end
    }

    /// Returns the end of the block below this line: lines with a deeper indentation, or items of a list.
    fn end_of_block(self) -> usize {
        let indent = |line: &str| line.len() - line.trim_start().len();
        let own = indent(self.shown());
        let (mut end, mut at) = (self.end, self.end);
        for (number, line) in self.text[self.end..].split_inclusive('\n').enumerate() {
            let start = at;
            at += line.len();
            // The first item is the rest of this line.
            if number == 0 {
                continue;
            }
            let is_part = line.trim().is_empty()
                || indent(line) > own
                || (indent(line) == own && line.trim_start().starts_with("- "));
            if !is_part {
                break;
            }
            if !line.trim().is_empty() {
                end = start + line.trim_end().len();
            }
        }
        end
    }
}

/// Returns the length of the value in brackets at the start of a text.
fn balanced(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut shown = String::new();
        let mut at = 0;
        for part in secret_parts(text, true) {
            shown += &text[at..part.start];
            shown.push('*');
            at = part.end;
        }
        shown + &text[at..]
    }

    #[test]
    fn values_after_secret_names_are_found_anywhere_in_a_line() {
        for (text, wanted) in [
            ("model: gpt\n  api_key: s3cret\nx: 1", "model: gpt\n  api_key: *\nx: 1"),
            ("host=db password=s3cret user=x", "host=db password=* user=x"),
            ("password = my pass phrase", "password = *"),
            ("--token=abc def", "--token=*"),
            ("run --token=abc --verbose", "run --token=* --verbose"),
            ("run --token abc --verbose", "run --token * --verbose"),
            ("['--token', 'abc def', '-v']", "['--token', '*', '-v']"),
            ("{\"user\":\"a\",\"TOKEN\":\"x\",\"b\":1}", "{\"user\":\"a\",\"TOKEN\":*,\"b\":1}"),
            ("{\\\"TOKEN\\\":\\\"x\\\",\\\"b\\\":1}", "{\\\"TOKEN\\\":*,\\\"b\\\":1}"),
            ("{\"pin\": 1234, \"b\": 1}", "{\"pin\": *, \"b\": 1}"),
            ("credentials: {user: a, password: b} # x", "credentials: * # x"),
            ("curl -H 'Authorization: Bearer abc' http://x", "curl -H 'Authorization: *' http://x"),
            ("got Bearer abcdefg1, sorry", "got Bearer *, sorry"),
            ("http://x/?token=abc&y=1", "http://x/?token=*&y=1"),
            ("<password>abc</password>", "<password>*</password>"),
            ("password: 'it''s', x", "password: *, x"),
            ("tokens:\n  - a\n  - b\nx: 1", "tokens:*\nx: 1"),
            ("token: |\n  a\n\n  b\nx: 1", "token: *\nx: 1"),
        ] {
            assert_eq!(shown(text), wanted, "{text}");
        }
    }

    #[test]
    fn credentials_in_urls_and_private_keys_are_found() {
        for (text, wanted) in [
            ("url: postgres://user:pass@db:5432/x", "url: postgres://*@db:5432/x"),
            ("https://abc@host/x@v1", "https://*@v1"),
            ("redis://u:p/w@host", "redis://*@host"),
            ("see https://host:80/a@b and http://c/d", "see https://host:80/a@b and http://c/d"),
            ("a\n-----BEGIN RSA PRIVATE KEY-----\nx\n-----END RSA PRIVATE KEY-----\nb", "a\n*\nb"),
        ] {
            assert_eq!(shown(text), wanted, "{text}");
        }
    }

    #[test]
    fn references_switches_and_sentences_are_shown() {
        for text in [
            "secretName: b",
            "key:",
            "token: $(OTHER)",
            "secret: true",
            "the token is wrong",
            "secretKeyRef: {}",
            "basic authentication failed",
            "--token --verbose",
            "db.secretRef.name=x",
            "image: registry.example/agent@sha256:abc",
        ] {
            assert_eq!(shown(text), text);
        }
    }
}
