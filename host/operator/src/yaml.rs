//! Writes a value as YAML that parses to the same value. Escapes characters that control a terminal or hide other
//! characters.

use std::borrow::Cow;

use kaos_policy::printable::{printable_lines, quoted_yaml};
use serde::{Serialize, ser::Error as _};
use serde_json::Value;
use serde_saphyr::ser::Error;

/// Writes a value as one YAML document.
pub(crate) fn text(value: &impl Serialize) -> Result<String, Error> {
    let text = unescaped(value)?;
    if matches!(printable_lines(&text), Cow::Borrowed(_)) {
        return Ok(text);
    }
    escaped(serde_json::to_value(value).map_err(Error::custom)?, &text)
}

fn unescaped(value: &impl Serialize) -> Result<String, Error> {
    let options = serde_saphyr::ser_options! {
        // Never fold a long text into several lines: `escaped` would make lines longer, so the lines would have to
        // break elsewhere.
        folded_wrap_chars: usize::MAX,
    };
    serde_saphyr::to_string_with_options(value, options)
}

/// Writes a value with escapes. The library escapes only some of the special characters. So this function writes a
/// unique word instead of each text with a special character, and then replaces the word with the escaped text.
fn escaped(mut value: Value, unescaped_text: &str) -> Result<String, Error> {
    let unused = (0..=unescaped_text.len())
        .map(|number| format!("escaped{number}text"))
        .find(|word| !unescaped_text.contains(word));
    let mut words = Words { prefix: unused.unwrap_or_default(), scalars: Vec::new() };
    words.replace_in(&mut value);
    Ok(words.resolve(&unescaped(&value)?))
}

/// The unique words that stand for escaped texts in the YAML.
struct Words {
    prefix: String,
    scalars: Vec<String>,
}

impl Words {
    fn word(&mut self, text: &str) -> Option<String> {
        self.scalars.push(quoted_yaml(text)?);
        Some(format!("{}{}x", self.prefix, self.scalars.len() - 1))
    }

    fn replace_in(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Some(word) = self.word(text) {
                    *text = word;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.replace_in(item)),
            Value::Object(fields) => {
                let replaced = std::mem::take(fields).into_iter().map(|(name, mut value)| {
                    self.replace_in(&mut value);
                    (self.word(&name).unwrap_or(name), value)
                });
                *fields = replaced.collect();
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn resolve(&self, text: &str) -> String {
        let mut parts = text.split(&self.prefix);
        let mut resolved = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (number, rest) = part.split_once('x').unwrap_or_default();
            resolved
                .push_str(number.parse().ok().and_then(|at: usize| self.scalars.get(at)).map_or("", |scalar| scalar));
            resolved.push_str(rest);
        }
        resolved
    }
}

/// Writes values as documents of one stream.
pub(crate) fn stream<T: Serialize>(values: &[T]) -> Result<String, Error> {
    Ok(values.iter().map(text).collect::<Result<Vec<_>, _>>()?.join("---\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn written_yaml_reads_back_unchanged() {
        for value in [
            "",
            " ",
            "a",
            " a",
            "a ",
            "a\n",
            "a\n\n",
            "\na",
            "a\nb",
            "a\n b\n",
            "  a\nb",
            "a \nb",
            "\t",
            "a\tb",
            "yes",
            "null",
            "0644",
            "1e3",
            "- a",
            "a: b",
            "# a",
            "'",
            "\"",
            "\u{feff}a",
            "\u{85}",
            "\u{2028}",
            "é",
            "😀",
            "a\r\nb",
            "%a",
            "---",
            "...",
            "~",
            "=",
            "<<",
            "!a",
            "&a",
            "*a",
            "@",
            "`",
            "{",
            "|",
            ">",
        ] {
            let object =
                json!({"a": value, value: 1, "list": [value, {"b": value}], "n": null, "e": {}, "l": [], "f": 1.5});
            let written = text(&object).unwrap();
            let read: Value =
                serde_saphyr::from_str(&written).unwrap_or_else(|error| panic!("{value:?}: {error}\n{written}"));
            assert_eq!(read, object, "{written}");
        }
        let long = "x ".repeat(500);
        assert_eq!(serde_saphyr::from_str::<Value>(&text(&json!({"a": long})).unwrap()).unwrap()["a"], *long);
    }
    /// Returns a random text of characters that have a special meaning in YAML or in a terminal.
    fn drawn(rng: &mut fastrand::Rng) -> String {
        const CHARACTERS: [char; 26] = [
            'a',
            'x',
            '0',
            ' ',
            '\n',
            '\t',
            '"',
            '\'',
            '\\',
            ':',
            '#',
            '-',
            '{',
            '|',
            'é',
            '漢',
            '\u{1b}',
            '\u{9b}',
            '\r',
            '\u{200b}',
            '\u{200d}',
            '\u{202e}',
            '\u{2028}',
            '\u{2066}',
            '\u{feff}',
            '\u{e0041}',
        ];
        (0..rng.usize(..8)).filter_map(|_| rng.choice(CHARACTERS)).collect()
    }

    #[test]
    fn written_yaml_has_no_hidden_characters_and_reads_back_unchanged() {
        let mut rng = fastrand::Rng::with_seed(7);
        for _ in 0..2_000 {
            let (key, value, inner) = (drawn(&mut rng), drawn(&mut rng), drawn(&mut rng));
            let object =
                json!({"escaped0text": "escaped0text0x", key: {"a": value, inner.clone(): [inner]}, "l": [value]});
            let written = text(&object).unwrap();
            assert!(matches!(printable_lines(&written), Cow::Borrowed(_)), "{object}\n{written:?}");
            let read: Value =
                serde_saphyr::from_str(&written).unwrap_or_else(|error| panic!("{object}: {error}\n{written}"));
            assert_eq!(read, object, "{written}");
        }
    }
}
