//! Turns scalars into values, either by the core schema of YAML 1.2 or as texts.

use alloc::{borrow::ToOwned, string::String};
use serde_json::{Number, Value};

/// Returns the value of a scalar. `tag` is the suffix of a core-schema tag.
pub(super) fn resolve(text: &str, plain: bool, tag: Option<&str>) -> Value {
    let known = match tag {
        Some("str") => None,
        Some(_) => known(text),
        None if plain => known(text),
        None => None,
    };
    known.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Returns the text of a scalar, or null for a null without quotes and without a tag.
pub(super) fn as_text(text: &str, plain: bool, tag: Option<&str>) -> Value {
    if plain && tag.is_none() && is_null(text) { Value::Null } else { Value::String(text.to_owned()) }
}

fn known(text: &str) -> Option<Value> {
    match text {
        _ if is_null(text) => Some(Value::Null),
        "true" | "True" | "TRUE" => Some(Value::Bool(true)),
        "false" | "False" | "FALSE" => Some(Value::Bool(false)),
        _ => number(text).map(Value::Number),
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// Parses numbers that JSON can represent. Rewrites a number as JSON text and uses the JSON parser: the standard
/// library's float parser would be larger than the rest of this reader. `.inf` and `.nan` stay texts.
fn number(text: &str) -> Option<Number> {
    let unsigned = text.strip_prefix('-').or_else(|| text.strip_prefix('+')).unwrap_or(text);
    let radix = [("0x", 16), ("0o", 8)].into_iter().find_map(|(mark, radix)| Some((text.strip_prefix(mark)?, radix)));
    if let Some((digits, radix)) = radix {
        return whole(digits, radix).map(Number::from);
    }
    let bytes = unsigned.as_bytes();
    let is_number = bytes.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.');
    if !is_number || !bytes.iter().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(byte)) {
        return None;
    }
    let end = bytes.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(bytes.len());
    let (mantissa, exponent) = unsigned.split_at_checked(end)?;
    let dot = mantissa.bytes().position(|byte| byte == b'.');
    let (before, after) = mantissa.split_at_checked(dot.unwrap_or(end))?;
    let zeros = before.bytes().take_while(|byte| *byte == b'0').count();
    let fraction = after.get(1..).unwrap_or_default();
    if before.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut spelled = String::new();
    let significant = or_zero(before.get(zeros..).unwrap_or_default());
    let is_whole = dot.is_none() && exponent.is_empty();
    // Keep the sign of `-0.0`, but not the sign of `-0`.
    if text.starts_with('-') && !(is_whole && significant == "0") {
        spelled.push('-');
    }
    spelled.push_str(significant);
    if !is_whole {
        spelled.push('.');
        spelled.push_str(or_zero(fraction));
        spelled.push_str(exponent);
    }
    match serde_json::from_str(&spelled) {
        Ok(Value::Number(number)) => Some(number),
        _ => None,
    }
}

fn or_zero(digits: &str) -> &str {
    if digits.is_empty() { "0" } else { digits }
}

/// Returns the integer with these digits, or `None` if it is too large.
fn whole(digits: &str, radix: u32) -> Option<u64> {
    let step = |number: u64, c: char| number.checked_mul(radix.into())?.checked_add(c.to_digit(radix)?.into());
    if digits.is_empty() { None } else { digits.chars().try_fold(0, step) }
}
