//! Patterns of schemas. Patterns are regular expressions of Go. The `regex` crate reads some of them in another way.

use regex::Regex;

/// Compiles a pattern.
pub(crate) fn compile(text: &str) -> Result<Regex, regex::Error> {
    Regex::new(text).or_else(|error| Regex::new(&without_sets(text)).map_err(|_| error))
}

/// Returns a one-line error for an invalid pattern, and `None` for a valid pattern. Accepts a valid pattern that is too
/// large for the `regex` crate.
pub(crate) fn fault(text: &str) -> Option<String> {
    // Go accepts these escapes, but the `regex` crate does not.
    if text.contains("\\Q") || text.contains("\\C") {
        return None;
    }
    match compile(text) {
        Err(regex::Error::Syntax(why)) => {
            let last = why.lines().last().unwrap_or_default();
            Some(last.trim_start_matches("error: ").to_owned())
        }
        _ => None,
    }
}

/// Escapes characters that are literals in Go but not in the `regex` crate: braces that form no repetition, and
/// brackets and set operators inside of a class.
fn without_sets(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut in_class = false;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\\' => {
                out.push(c);
                if let Some(escaped) = rest.chars().next() {
                    out.push(escaped);
                    rest = &rest[escaped.len_utf8()..];
                }
                continue;
            }
            '[' if !in_class => {
                in_class = true;
                out.push(c);
                if let Some(after) = rest.strip_prefix('^') {
                    out.push('^');
                    rest = after;
                }
                // A bracket at the start of a class is a literal.
                if let Some(after) = rest.strip_prefix(']') {
                    out.push_str("\\]");
                    rest = after;
                }
                continue;
            }
            '[' if rest.starts_with(':') => {
                // A named class, such as [:alpha:].
                if let Some(end) = rest.find(":]") {
                    out.push(c);
                    out.push_str(&rest[..end + 2]);
                    rest = &rest[end + 2..];
                    continue;
                }
                out.push('\\');
            }
            '[' | '&' | '~' if in_class => out.push('\\'),
            ']' => in_class = false,
            '{' if !in_class && !repeats(rest) => out.push('\\'),
            _ => {}
        }
        out.push(c);
    }
    out
}

/// Returns whether the text after an opening brace forms a repetition: `2}`, `2,}` or `2,3}`.
fn repeats(rest: &str) -> bool {
    let Some((inside, _)) = rest.split_once('}') else { return false };
    let (least, most) = inside.split_once(',').unwrap_or((inside, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !least.is_empty() && digits(least) && digits(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_go_accepts_are_accepted() {
        for (pattern, text) in [
            ("^[a-z]{2,3}$", "ab"),
            ("^{a}$", "{a}"),
            (r"^\$\{[^}]+\}$", "${x}"),
            ("^[[]a]$", "[a]"),
            ("^[]x]+$", "]x"),
        ] {
            assert_eq!(fault(pattern), None, "{pattern}");
            assert!(compile(pattern).unwrap().is_match(text), "{pattern}");
        }
        assert_eq!(fault(r"^\Q[\E$"), None);
    }

    #[test]
    fn the_error_for_an_invalid_pattern_is_one_line() {
        for pattern in ["(", "[a", "(?=a)", r"\1", "*"] {
            let why = fault(pattern).unwrap();
            assert!(!why.is_empty() && !why.contains('\n'), "{why}");
        }
    }
}
