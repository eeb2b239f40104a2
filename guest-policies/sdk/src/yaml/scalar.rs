//! What a scalar means: the core schema of YAML 1.2.

use alloc::borrow::ToOwned;
use serde_json::{Number, Value};

/// The value of a scalar; `tag` is the suffix of a tag of the core schema.
pub(super) fn resolve(text: &str, plain: bool, tag: Option<&str>) -> Value {
    let known = match tag {
        Some("str") => None,
        Some(_) => known(text),
        None if plain => known(text),
        None => None,
    };
    known.unwrap_or_else(|| Value::String(text.to_owned()))
}

fn known(text: &str) -> Option<Value> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Some(Value::Null),
        "true" | "True" | "TRUE" => Some(Value::Bool(true)),
        "false" | "False" | "FALSE" => Some(Value::Bool(false)),
        _ => number(text).map(Value::Number),
    }
}

/// Numbers that JSON can hold; infinities and the like stay text.
fn number(text: &str) -> Option<Number> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let radix = [("0x", 16), ("0o", 8)].into_iter().find_map(|(mark, radix)| Some((text.strip_prefix(mark)?, radix)));
    if let Some((digits, radix)) = radix {
        let digits = Some(digits).filter(|digits| !digits.starts_with(['+', '-']))?;
        return u64::from_str_radix(digits, radix).ok().map(Number::from);
    }
    if let Ok(number) = text.parse::<u64>() {
        return Some(number.into());
    }
    if let Ok(number) = text.parse::<i64>() {
        return Some(number.into());
    }
    let float = unsigned.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b));
    if float { fraction(text) } else { None }
}

/// A number with a fraction or an exponent, in JSON's spelling read by JSON's parser: the standard library's has
/// tables that would be the largest data of a component.
fn fraction(text: &str) -> Option<Number> {
    let sign = if text.starts_with('-') { "-" } else { "" };
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = unsigned.split_at(unsigned.find(['e', 'E']).unwrap_or(unsigned.len()));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let digits = |text: &str| if text.is_empty() { "0".to_owned() } else { text.to_owned() };
    let spelled = format!("{sign}{}.{}{exponent}", digits(whole.trim_start_matches('0')), digits(fraction));
    match serde_json::from_str(&spelled) {
        Ok(Value::Number(number)) => Some(number),
        _ => None,
    }
}
