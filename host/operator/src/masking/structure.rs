//! Texts that contain JSON or YAML: a configuration in a ConfigMap, or arguments in JSON.

use serde_json::Value;

use crate::yaml;

/// The maximum size, in bytes, of a text that this module parses.
const LARGEST: usize = 1 << 20;

/// The format of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Yaml,
}

/// The content of a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Structure {
    format: Format,
    pub(super) documents: Vec<Value>,
}

impl Structure {
    /// Parses a text that contains maps or lists. Returns `None` for every other text.
    pub(super) fn of(text: &str) -> Option<Self> {
        if text.len() > LARGEST {
            return None;
        }
        let is_flow = text.trim_start().starts_with(['{', '[']);
        if is_flow && let Ok(value) = serde_json::from_str(text) {
            return Some(Self { format: Format::Json, documents: vec![value] });
        }
        let is_block = text.contains('\n') && text.contains([':', '-']);
        if !(is_flow || is_block) {
            return None;
        }
        let documents: Vec<Value> = split(text)
            .into_iter()
            .filter(|document| !document.trim().is_empty())
            .map(|document| serde_saphyr::from_str(&document).ok())
            .collect::<Option<_>>()?;
        let is_structure = documents.iter().any(|document| document.is_object() || document.is_array());
        is_structure.then_some(Self { format: Format::Yaml, documents })
    }

    /// Returns the content as a text of the same format.
    pub(super) fn text(&self) -> Option<String> {
        match (self.format, self.documents.as_slice()) {
            (Format::Json, [value]) => Some(value.to_string()),
            (_, documents) => {
                let documents: Option<Vec<String>> = documents.iter().map(|it| yaml::text(it).ok()).collect();
                Some(documents?.join("---\n"))
            }
        }
    }
}

/// Splits a text into YAML documents.
fn split(text: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in text.split_inclusive('\n') {
        if line.trim_end() == "---" {
            documents.push(String::new());
        } else if let Some(document) = documents.last_mut() {
            document.push_str(line);
        }
    }
    documents
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_keeps_its_format() {
        let json = Structure::of("{\"a\": [1, \"b\"]}").unwrap();
        assert_eq!(json.text().unwrap(), "{\"a\":[1,\"b\"]}");
        let yaml = Structure::of("a: 1\nb:\n- c\n---\nd: e\n").unwrap();
        assert_eq!(yaml.documents, [json!({"a": 1, "b": ["c"]}), json!({"d": "e"})]);
        assert_eq!(Structure::of(&yaml.text().unwrap()), Some(yaml));
        assert_eq!(Structure::of("{a: b}").unwrap().documents, [json!({"a": "b"})]);
        for text in ["", "a: b", "two\nlines", "{", "a: b: c\nd", "- \u{1}\n- x: [\n"] {
            assert_eq!(Structure::of(text), None, "{text}");
        }
    }
}
