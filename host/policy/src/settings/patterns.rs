//! Measures the patterns (regular expressions) of a schema before the host builds a validator. The cost of a match
//! depends on the size of the compiled pattern.
//!
//! The regex engine works without backtracking. The cost of a match is at most the compiled size of the pattern times
//! the length of the text. The compiled form of a pattern of a few bytes can have megabytes.

use std::collections::BTreeMap;

use jsonschema::{Draft, PatternOptions, ValidationOptions};
use serde_json::{Map, Value, json};

use super::{SchemaError, bounds::located};

/// The maximum number of patterns in a schema.
pub(super) const PATTERNS: usize = 100;
/// The maximum length of a pattern's text in bytes. Parsing a long text can also take long.
const TEXT: usize = 1 << 10;
/// The maximum length of the texts of all different patterns together, in bytes.
const TEXTS: usize = 16 << 10;
/// The maximum size of all different compiled patterns together, in bytes.
const COMPILED: usize = 2 << 20;
/// The maximum size of one compiled pattern in bytes.
pub(super) const PATTERN: usize = 384 << 10;
/// The maximum size in bytes of the cache that the regex engine has for one pattern. The cache speeds up matches.
const KEPT: usize = 32 << 10;
/// If a compiled pattern has this size in bytes, matching one byte of text costs one step.
const STEP: usize = 2 << 10;
/// Size limits, in ascending order. The size of a pattern is the first limit within which the pattern compiles.
const SIZES: [usize; 5] = [STEP, 4 * STEP, 16 * STEP, 64 * STEP, PATTERN];

/// The patterns of a schema, each with the number of steps for matching one byte of text.
#[derive(Default)]
pub(super) struct Patterns(BTreeMap<String, usize>);

/// Returns the options of every validator of a schema.
pub(super) fn options() -> ValidationOptions<'static> {
    options_within(PATTERN)
}

fn options_within(bytes: usize) -> ValidationOptions<'static> {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        // The engine `regex` works without backtracking: the cost of a match grows only with the text and the pattern.
        .with_pattern_options(PatternOptions::regex().size_limit(bytes).dfa_size_limit(KEPT))
        .offline()
}

impl Patterns {
    /// Measures the patterns. Refuses a schema with too many patterns, with patterns whose texts are too long, or with
    /// patterns that are too large together.
    ///
    /// Accepts a text that does not compile within the largest size limit, because this text may be no pattern: a
    /// default or an example can contain a field `pattern`. If the text is a pattern, the validator refuses it later.
    pub(super) fn of(root: &Value) -> Result<Self, SchemaError> {
        let (mut found, mut count) = (BTreeMap::new(), 0);
        collect(root, &mut Vec::new(), &mut |path, text| {
            count += 1;
            if text.len() > TEXT {
                return Err(SchemaError::PatternTooLong { path: located(path), bytes: text.len(), limit: TEXT });
            }
            found.entry(text.to_owned()).or_insert_with(|| located(path));
            Ok(())
        })?;
        if count > PATTERNS {
            return Err(SchemaError::TooManyPatterns { count, limit: PATTERNS });
        }
        let texts = found.keys().map(String::len).sum();
        if texts > TEXTS {
            return Err(SchemaError::PatternsTooLong { bytes: texts, limit: TEXTS });
        }
        let (mut patterns, mut all) = (BTreeMap::new(), 0);
        for (text, path) in found {
            let size = size(&text);
            all += size;
            if all > COMPILED {
                return Err(SchemaError::PatternsTooLarge { path, limit: COMPILED });
            }
            patterns.insert(text, size.div_ceil(STEP));
        }
        Ok(Self(patterns))
    }

    /// Returns the steps for matching a text against a pattern.
    pub(super) fn steps(&self, pattern: &str, text: &str) -> usize {
        let each = self.0.get(pattern).copied().unwrap_or(PATTERN / STEP);
        text.len().saturating_add(1).saturating_mul(each)
    }
}

/// Returns the first size limit within which a pattern compiles.
fn size(pattern: &str) -> usize {
    let schema = json!({"pattern": pattern});
    let suffices = |size: &usize| options_within(*size).build(&schema).is_ok();
    SIZES.into_iter().find(suffices).unwrap_or(PATTERN)
}

/// Calls `visit` with each pattern and its path. Treats a field with the name of a pattern keyword as a pattern, even
/// inside of a default or an example. So the host may refuse a valid schema, but never overlooks a pattern.
fn collect<'a>(
    value: &'a Value,
    path: &mut Vec<&'a str>,
    visit: &mut impl FnMut(&[&str], &'a str) -> Result<(), SchemaError>,
) -> Result<(), SchemaError> {
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| collect(item, path, visit)),
        Value::Object(fields) => {
            let named = fields.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
            for pattern in named {
                path.push("patternProperties");
                visit(path, pattern)?;
                path.pop();
            }
            for (name, value) in fields {
                path.push(name);
                match value {
                    Value::String(pattern) if name == "pattern" => visit(path, pattern)?,
                    _ => collect(value, path, visit)?,
                }
                path.pop();
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Schema;

    fn refused(schema: &Value) -> SchemaError {
        Schema::parse(&schema.to_string()).unwrap_err()
    }

    /// Returns a schema that has one setting for each pattern.
    fn with(patterns: impl IntoIterator<Item = String>) -> Value {
        let one = |(n, pattern)| (format!("s{n}"), json!({"type": "string", "pattern": pattern}));
        json!({"type": "object", "properties": patterns.into_iter().enumerate().map(one).collect::<Map<_, _>>()})
    }

    #[test]
    fn too_many_and_too_large_patterns_are_refused() {
        let small = |n: usize| format!("^[a-z]{{1,{}}}$", n + 1);
        assert!(Schema::parse(&with((0..PATTERNS).map(small)).to_string()).is_ok());
        let error = refused(&with((0..=PATTERNS).map(small)));
        assert_eq!(error, SchemaError::TooManyPatterns { count: PATTERNS + 1, limit: PATTERNS });
        let SchemaError::Invalid(told) = refused(&with(["([a-z0-9]{1,200}x){200}".to_owned()])) else {
            panic!("another error")
        };
        assert!(told.contains("use maxLength") && told.contains("#/properties/s0/pattern"), "{told}");
        for usual in ["^.{1,253}$", "^[^/]{0,253}$", "^([^/]{1,63}/)?[^/]{0,63}$", r"^(\p{L}|\d){0,8}$"] {
            assert!(Schema::parse(&with([usual.to_owned()]).to_string()).is_ok(), "{usual}");
        }
    }

    #[test]
    fn long_texts_of_patterns_and_a_large_sum_are_refused_with_place_and_remedy() {
        let long = format!("^{}$", "a".repeat(TEXT));
        let error = refused(&with([long.clone()]));
        let path = "#/properties/s0/pattern".to_owned();
        assert_eq!(error, SchemaError::PatternTooLong { path, bytes: TEXT + 2, limit: TEXT });
        assert!(error.to_string().ends_with("write a shorter pattern, and use maxLength or enum"), "{error}");
        let named = refused(&json!({"type": "object", "patternProperties": {long: {}}}));
        assert!(matches!(named, SchemaError::PatternTooLong { .. }), "{named}");
        let many = refused(&with((0..30).map(|n| format!("^{}{n}$", "a".repeat(1000)))));
        assert!(matches!(many, SchemaError::PatternsTooLong { limit: TEXTS, .. }), "{many}");
        let large = refused(&with((0..20).map(|n| format!("^[a-z]{n}.{{1,300}}$"))));
        assert!(matches!(&large, SchemaError::PatternsTooLarge { path, .. } if path.contains("/pattern")), "{large}");
    }

    #[test]
    fn patterns_of_the_default_policies_and_of_kubernetes_cost_one_step_a_byte_or_a_few() {
        let guests = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../guest-policies")).unwrap();
        let schemas =
            guests.filter_map(|guest| std::fs::read_to_string(guest.unwrap().path().join("settings.schema.json")).ok());
        for schema in schemas {
            let patterns = Patterns::of(&serde_json::from_str(&schema).unwrap()).unwrap();
            assert!(patterns.0.len() < PATTERNS / 2 && patterns.0.values().all(|each| *each <= 16), "{:?}", patterns.0);
        }
        let label = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
        assert_eq!(Patterns::of(&with([label.to_owned()])).unwrap().steps(label, "12345"), 6);
    }

    #[test]
    fn a_slow_pattern_with_a_long_default_is_refused_without_a_match() {
        let random = |state: &mut u32| {
            *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if state.is_multiple_of(65_537) { '0' } else { char::from(b'0' + u8::from(*state >> 16 & 1 == 0)) }
        };
        let mut state = 12_345;
        let default: String = (0..190_000).map(|_| random(&mut state)).collect();
        for repeats in [7_000, 4_000, 100] {
            let pattern = format!("^[01]*1[01]{{{repeats}}}$");
            let slow = json!({"type": "object", "properties":
                {"x": {"type": "string", "pattern": pattern, "default": default}}});
            let error = refused(&slow);
            let is_told = match &error {
                SchemaError::Invalid(told) => told.contains("#/properties/x/pattern"),
                SchemaError::Defaults(told) => told.to_string().contains("is too long to be checked"),
                _ => false,
            };
            assert!(is_told, "{error}");
        }
    }
}
