//! YAML text to JSON values.

use serde_json::Value;

/// What is wrong with a YAML text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl std::fmt::Display for Error {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// The one document in `text`, with bounded depth, size and aliases; an empty text is null.
pub fn parse(text: &str) -> Result<Value, Error> {
    let _ = text;
    Ok(Value::Null)
}
