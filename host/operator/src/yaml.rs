//! Writes YAML that reads back as the same value.

use serde::Serialize;

/// Writes a value as one document.
pub(crate) fn text(value: &impl Serialize) -> Result<String, serde_saphyr::ser::Error> {
    let options = serde_saphyr::ser_options! {
        // Folded text depends on the positions of line breaks, so keep texts without newlines in one line.
        folded_wrap_chars: usize::MAX,
    };
    serde_saphyr::to_string_with_options(value, options)
}

/// Writes values as documents of one stream.
pub(crate) fn stream<T: Serialize>(values: &[T]) -> Result<String, serde_saphyr::ser::Error> {
    Ok(values.iter().map(text).collect::<Result<Vec<_>, _>>()?.join("---\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
}
