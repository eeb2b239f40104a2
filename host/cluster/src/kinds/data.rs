//! Rules of ConfigMaps and Secrets: keys, base64 and size.

use base64::{
    DecodeError, Engine as _, alphabet,
    engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD},
};
use serde_json::{Value, json};

use crate::{catalogue::Family, status::Cause};

/// Decodes base64 as Go does. Go ignores trailing bits.
static GO: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// The maximum size of all values together, in bytes.
const MAX_DATA_BYTES: usize = 1 << 20;

/// Moves the values in `stringData` of a Secret to its `data`.
pub(super) fn fill_secret(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    if let Some(Value::Object(plain)) = fields.remove("stringData") {
        let data = fields.entry("data").or_insert_with(|| json!({}));
        for (key, value) in plain {
            let text = value.as_str().unwrap_or_default();
            data[key] = json!(STANDARD.encode(text));
        }
    }
    fields.entry("type").or_insert_with(|| json!("Opaque"));
}

/// Returns Go's error for the first value that is not base64, or `None` if all values are base64.
pub(super) fn undecodable(family: Family, object: &Value) -> Option<String> {
    let mut values = bytes(family, object).filter_map(|(_, value)| value.as_str());
    let at = values.find_map(|text| {
        Some(match decode(text).err()? {
            DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol(at, _) => at,
            DecodeError::InvalidLength(_) | DecodeError::InvalidPadding => text.len(),
        })
    })?;
    Some(format!("illegal base64 data at input byte {at}"))
}

/// Decodes base64. Ignores line breaks, as Go does.
fn decode(text: &str) -> Result<Vec<u8>, DecodeError> {
    GO.decode(text.replace(['\r', '\n'], ""))
}

/// Returns the values that are encoded in base64.
fn bytes(family: Family, object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let field = if family == Family::Secret { "data" } else { "binaryData" };
    object[field].as_object().into_iter().flatten()
}

/// Returns whether a key is valid.
fn is_key(key: &str) -> bool {
    let character = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !key.is_empty() && key.len() <= 253 && key.bytes().all(character) && key != "." && !key.starts_with("..")
}

/// Validates a ConfigMap or a Secret.
pub(super) fn check(family: Family, new: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    for field in ["data", "binaryData"] {
        for key in new[field].as_object().into_iter().flat_map(|data| data.keys()).filter(|key| !is_key(key)) {
            let rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
            causes.push(Cause::invalid(&format!("{field}[{key}]"), key, rule));
        }
    }
    if size(family, new) > MAX_DATA_BYTES {
        // For a ConfigMap, a real server's error names the whole object instead of a field.
        let field = if family == Family::Secret { "data" } else { "[]" };
        let message = format!("Too long: may not be more than {MAX_DATA_BYTES} bytes");
        causes.push(Cause { reason: "FieldValueTooLong", message, field: field.into() });
    }
    let Some(old) = old else { return causes };
    if old["immutable"] == true {
        for field in ["immutable", "data", "binaryData"] {
            if new[field] != old[field] {
                causes.push(Cause::forbidden(field, "field is immutable when `immutable` is set"));
            }
        }
    }
    if family == Family::Secret && new["type"] != old["type"] {
        causes.push(Cause::invalid("type", &new["type"].to_string(), "field is immutable"));
    }
    causes
}

fn size(family: Family, object: &Value) -> usize {
    let decoded = |text: &str| text.trim_end_matches('=').len() * 3 / 4;
    let raw: usize = bytes(family, object).filter_map(|(_, value)| value.as_str()).map(decoded).sum();
    let texts = object["data"].as_object().filter(|_| family == Family::ConfigMap).into_iter().flatten();
    raw + texts.filter_map(|(_, value)| value.as_str()).map(str::len).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded_like_in_go() {
        let found = |text: &str| undecodable(Family::Secret, &json!({"data": {"k": text}}));
        for text in ["", "YQ==", "YR==", "YW\nI=", "bWVkZGxlZA=="] {
            assert_eq!(found(text), None, "{text}");
        }
        assert_eq!(found("a bcdefg").unwrap(), "illegal base64 data at input byte 1");
        assert!(found("YQ").is_some() && found("plain text").is_some());
        assert_eq!(undecodable(Family::ConfigMap, &json!({"data": {"k": "plain text"}})), None);
        assert!(undecodable(Family::ConfigMap, &json!({"binaryData": {"k": "plain text"}})).is_some());
    }

    #[test]
    fn data_has_at_most_one_mebibyte() {
        let wrong = |family: Family, object: Value| -> Vec<(String, String)> {
            check(family, &object, None).into_iter().map(|cause| (cause.field, cause.message)).collect()
        };
        let text = "Too long: may not be more than 1048576 bytes".to_owned();
        let (most, more) = ("x".repeat(MAX_DATA_BYTES), "x".repeat(MAX_DATA_BYTES + 1));
        assert!(wrong(Family::ConfigMap, json!({"data": {"k": most}})).is_empty());
        assert_eq!(wrong(Family::ConfigMap, json!({"data": {"k": more}})), [("[]".to_owned(), text.clone())]);
        assert!(wrong(Family::Secret, json!({"data": {"k": STANDARD.encode(&most)}})).is_empty());
        assert_eq!(wrong(Family::Secret, json!({"data": {"k": STANDARD.encode(&more)}})), [("data".to_owned(), text)]);
    }
}
