//! Parses amounts, which Kubernetes calls quantities, and reports values that are not valid amounts.

use kaos_amounts::{UNIT, nanos};
use serde_json::Value;

use super::{
    found::{Findings, shown},
    manifest_value::ManifestValue,
};

/// Parses a text or a number, and returns the amount in billionths, rounded up. Returns the largest `i128` for an
/// amount that is too large, and `None` for a value that is not an amount.
pub(super) fn amount(value: &Value) -> Option<i128> {
    match value {
        Value::String(text) => nanos(text),
        Value::Number(number) => nanos(&number.to_string()),
        _ => None,
    }
}

/// Returns whether an amount is a whole number.
pub(super) fn is_whole(amount: i128) -> bool {
    amount % UNIT == 0
}

/// Checks that the value is an amount and is not negative. Returns the amount.
pub(super) fn check(at: &ManifestValue<'_>, found: &mut Findings) -> Option<i128> {
    let Some(amount) = amount(at.value()) else {
        found.add(at, format!("{} is not an amount: write an amount such as 500m, 1.5 or 2Gi", shown(at)));
        return None;
    };
    if amount < 0 {
        found.add(at, format!("{} is negative: write an amount of 0 or more", shown(at)));
    }
    Some(amount)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_amounts_as_texts_are() {
        assert_eq!((amount(&json!(2)), amount(&json!(0.5)), amount(&json!(true))), (nanos("2"), nanos("500m"), None));
        assert!(is_whole(nanos("3k").unwrap()) && !is_whole(nanos("1500m").unwrap()));
    }
}
