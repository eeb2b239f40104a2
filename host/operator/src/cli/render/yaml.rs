//! `-o yaml`: the manifests, ready for `kubectl apply`, each object's behind a comment that names it.

use std::io;

use kaos_policy::contract::Outcome;
use serde_json::{Value, json};

use super::super::output::Output;
use crate::{input::Document, offline::Entry};

pub(super) fn write(out: &mut Output, document: &Document, entry: &Entry, with_status: bool) -> io::Result<()> {
    let Entry { rendered, outcome, status } = entry;
    let verdict = match outcome {
        Outcome::Applied => "",
        Outcome::Gated => ": waits for what it depends on",
        Outcome::Refused(_) => ": refused",
        Outcome::Failed(_) => ": the policy failed",
    };
    let layers = std::iter::once(&rendered.policy).chain(&rendered.overlays).map(ToString::to_string);
    let layers: Vec<_> = layers.collect();
    out.text(&format!("# {}: policy {}{verdict}\n", document.identity, layers.join(", with ")))?;
    for manifest in rendered.manifests() {
        out.text("---\n")?;
        out.text(&text(manifest)?)?;
    }
    if with_status {
        let object = rendered.object.reference();
        let shown = json!({
            "apiVersion": object.api_version,
            "kind": object.kind,
            "metadata": {"name": object.name, "namespace": object.namespace},
            "status": status,
        });
        out.text("---\n# what the operator would write to its status\n")?;
        out.text(&text(&shown)?)?;
    }
    Ok(())
}

fn text(value: &Value) -> io::Result<String> {
    let options = serde_saphyr::ser_options! {
        // Folded text depends on where lines are broken: texts without newlines stay in one line.
        folded_wrap_chars: usize::MAX,
    };
    serde_saphyr::to_string_with_options(value, options).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_the_same() {
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
