//! Converts the text of a variable, an annotation or `--set` to the type that the schema expects.

use serde_json::Value;

use super::{Path, Schema};
use crate::cut::{VALUE, cut};

impl Schema {
    /// Converts the text of a variable for the setting at a path. Accepts several words for true and false, because
    /// people, shells and charts write variables in different ways.
    pub(super) fn convert_variable(&self, path: &Path, text: &str) -> Result<Value, String> {
        let types = self.types(path);
        let means_other = types.iter().any(|of| ["string", "integer", "number"].contains(of));
        match boolean(text).filter(|_| types.contains(&"boolean") && !means_other) {
            Some(value) => Ok(Value::Bool(value)),
            None => self.convert(path, text),
        }
    }

    /// Converts a text for the setting at a path. If the schema allows a text for the setting, returns the text
    /// unchanged.
    pub(super) fn convert(&self, path: &Path, text: &str) -> Result<Value, String> {
        let shown = || cut(text, VALUE);
        let types = self.types(path);
        let allows = |name: &str| types.contains(&name);
        if allows("string") {
            return Ok(Value::String(text.to_owned()));
        }
        let trimmed = text.trim();
        if allows("boolean") {
            match trimmed {
                "true" => return Ok(Value::Bool(true)),
                "false" => return Ok(Value::Bool(false)),
                _ => {}
            }
        }
        if (allows("integer") || allows("number"))
            && let Ok(number) = trimmed.parse::<i64>()
        {
            return Ok(number.into());
        }
        if allows("number")
            && let Some(number) = trimmed.parse().ok().and_then(serde_json::Number::from_f64)
        {
            return Ok(Value::Number(number));
        }
        if allows("null") && trimmed == "null" {
            return Ok(Value::Null);
        }
        if types.is_empty() || allows("object") || allows("array") {
            let example = if allows("array") { r#"["a", "b"]"# } else { r#"{"a": "b"}"# };
            return serde_json::from_str(trimmed)
                .or_else(|error| if types.is_empty() { Ok(text.into()) } else { Err(error) })
                .map_err(|error| {
                    let shown = shown();
                    format!(
                        "is {shown:?}, but must be {}: write it as JSON, such as {example} ({error})",
                        names(&types)
                    )
                });
        }
        Err(format!("is {:?}, but must be {}: correct or remove it", shown(), names(&types)))
    }
}

/// Describes types in plain words.
fn names(types: &[&str]) -> String {
    let name = |of: &&str| match *of {
        "string" => "a text",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "a list",
        "object" => "an object",
        _ => "null",
    };
    types.iter().map(name).collect::<Vec<_>>().join(" or ")
}

fn boolean(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}
