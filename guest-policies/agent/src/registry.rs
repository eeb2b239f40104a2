//! The registry of harness runtimes: one entry out of the text of `runtimes.yaml`.
//!
//! Reads block mappings of plain and quoted scalars, which is what registries are made of, and refuses to
//! guess about anything else. A whole YAML parser would be a third of the component.

use alloc::{borrow::ToOwned, string::String, vec::Vec};

/// What the registry says about a harness.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Entry {
    pub(crate) image: String,
    pub(crate) driver: String,
}

/// One line that says something: its indentation, and its text without it.
struct Line<'a> {
    number: usize,
    indent: usize,
    text: &'a str,
}

/// The entry `name`, below `runtimes` if the text has that key; none if there is no such entry.
pub(crate) fn find(text: &str, name: &str) -> Result<Option<Entry>, String> {
    let lines = lines(text)?;
    let top = match section(&lines, "runtimes")? {
        Some((below, "")) => below,
        Some(_) => return Err(flow("runtimes")),
        None => lines.as_slice(),
    };
    let Some((fields, inline)) = section(top, name)? else { return Ok(None) };
    if !inline.is_empty() {
        return Err(flow(name));
    }
    let field = |field: &str| match section(fields, field)? {
        Some((_, value)) => scalar(value).ok_or_else(|| flow(field)),
        None => Ok(String::new()),
    };
    Ok(Some(Entry { image: field("image")?, driver: field("driver")? }))
}

fn flow(key: &str) -> String {
    let shown: String = key.chars().take(63).collect();
    format!("the value of {shown} must be written in block style: keys on lines of their own, texts plain or in quotes")
}

fn lines(text: &str) -> Result<Vec<Line<'_>>, String> {
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        let text = text.trim_end();
        if text.is_empty() || text.starts_with('#') || (indent == 0 && text == "---") {
            continue;
        }
        if text.starts_with('\t') {
            return Err(format!("line {}: indent with spaces", index + 1));
        }
        lines.push(Line { number: index + 1, indent, text });
    }
    Ok(lines)
}

/// The lines below `key` of the mapping that `lines` begin with, and what stands on the key's own line.
fn section<'a, 'b>(lines: &'b [Line<'a>], key: &str) -> Result<Option<(&'b [Line<'a>], &'a str)>, String> {
    let Some(indent) = lines.first().map(|line| line.indent) else { return Ok(None) };
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let rest = lines.get(at + 1..).unwrap_or_default();
        // What is deeper belongs to this key; so do the items of a list at the key's own depth.
        let is_below =
            |next: &&Line<'_>| next.indent > indent || (next.indent == indent && next.text.starts_with("- "));
        let below = rest.iter().take_while(is_below).count();
        let (name, value) =
            split(line.text).ok_or_else(|| format!("line {}: must be a key and a value", line.number))?;
        if line.indent != indent {
            return Err(format!("line {}: is indented by {} and not by {indent}", line.number, line.indent));
        }
        if scalar(name).as_deref() == Some(key) {
            return Ok(Some((rest.get(..below).unwrap_or_default(), value)));
        }
        at += below + 1;
    }
    Ok(None)
}

/// `key: value`, without the comment after it.
fn split(text: &str) -> Option<(&str, &str)> {
    let end = match text.as_bytes().first()? {
        quote @ (b'"' | b'\'') => 2 + text.get(1..)?.find(char::from(*quote))?,
        _ => text.find(": ").or_else(|| text.strip_suffix(':').map(str::len)).or_else(|| text.find(":\t"))?,
    };
    let value = text.get(end..)?.trim_start().strip_prefix(':')?.trim();
    Some((text.get(..end)?, if value.starts_with('#') { "" } else { value }))
}

/// The text of a plain or quoted scalar on one line; none for anything else.
fn scalar(text: &str) -> Option<String> {
    let (quote, rest) = match text.as_bytes().first() {
        None => return Some(String::new()),
        Some(b'"' | b'\'') => (text.get(..1)?, text.get(1..)?),
        Some(b'{' | b'[' | b'&' | b'*' | b'!' | b'|' | b'>' | b'%' | b'@' | b'`') => return None,
        Some(_) => {
            let plain = text.find(" #").and_then(|comment| text.get(..comment)).unwrap_or(text).trim_end();
            return Some(if matches!(plain, "null" | "~") { String::new() } else { plain.to_owned() });
        }
    };
    let end = rest.find(quote)?;
    let (inner, after) = (rest.get(..end)?, rest.get(end + 1..)?.trim());
    // Escapes are nothing that the name of an image needs.
    let whole = after.is_empty() || after.starts_with('#');
    (whole && !inner.contains('\\')).then(|| inner.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# harnesses\nruntimes:\n  # first\n  other:\n    image: a:1\n    args:\n    - x: y\n    - --flag\n  \
                        pi:   # the one\n    description: >\n      image: not this\n      one\n    image: \"pi:2\" # pinned\n    \
                        driver: 'pi'\n  bare:\n    driver: ~\nmore: 1\n";

    fn entry(image: &str, driver: &str) -> Entry {
        Entry { image: image.into(), driver: driver.into() }
    }

    #[test]
    fn an_entry_is_found_among_comments_lists_and_long_texts() {
        assert_eq!(find(TEXT, "pi").unwrap().unwrap(), entry("pi:2", "pi"));
        assert_eq!(find(TEXT, "other").unwrap().unwrap(), entry("a:1", ""));
        assert_eq!(find(TEXT, "bare").unwrap().unwrap(), entry("", ""));
        assert_eq!(find(TEXT, "more").unwrap(), None);
        assert_eq!(find("", "pi").unwrap(), None);
    }

    #[test]
    fn entries_may_stand_without_a_heading() {
        assert_eq!(find("'pi':\n  image: host:5000/pi:1\n", "pi").unwrap().unwrap(), entry("host:5000/pi:1", ""));
    }

    #[test]
    fn what_is_not_understood_is_said_and_not_guessed() {
        for text in [
            "runtimes: {pi: {image: x}}",
            "pi: {image: x}",
            "pi:\n  image: [x]",
            "pi:\n  image: |\n    x",
            "pi:\n\timage: x",
            "- pi",
            "pi:\n  image: \"a\\n\"",
        ] {
            assert!(find(text, "pi").is_err(), "{text}");
        }
    }

    #[test]
    fn it_reads_what_a_yaml_parser_reads() {
        let parsed = kaos_policy_sdk::yaml::parse(TEXT).unwrap();
        for name in ["pi", "other", "bare"] {
            let wanted = &parsed["runtimes"][name];
            let text = |field: &str| wanted[field].as_str().unwrap_or_default().to_owned();
            assert_eq!(find(TEXT, name).unwrap().unwrap(), Entry { image: text("image"), driver: text("driver") });
        }
    }
}
