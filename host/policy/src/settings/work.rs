//! Limits the work of validating settings.
//!
//! A validator checks each value against every part of the schema that describes the value, and collects an error for
//! each part. With a long list in an annotation and many rules for each item, the validation could take too long, and
//! its errors could fill the memory. So before a validation, this module counts the steps that the validator will take.
//! Above the limit, the host refuses the settings without a validation.

use serde_json::{Map, Value};

use super::{Schema, bounds::times, patterns::Patterns};

/// The maximum number of steps. A step takes about 0.2 µs. One step is the check of a value against a keyword, or the
/// match of a byte of text against 2 KiB of a compiled pattern.
pub(super) const MAX_STEPS: usize = 200_000;
/// The number of bytes of text that a validator compares or counts in one step.
const BYTES: usize = 64;

/// Returns the number of steps for validating settings against a schema. Returns `None` if the number exceeds the
/// limit.
pub(super) fn steps(schema: &Schema, settings: &Value) -> Option<usize> {
    let mut work = Work { root: schema.document(), patterns: &schema.patterns, left: MAX_STEPS, times: 1 };
    work.hold(settings, schema.document())?;
    Some(MAX_STEPS - work.left)
}

/// The state while the host counts the validator's steps.
struct Work<'a> {
    root: &'a Value,
    patterns: &'a Patterns,
    left: usize,
    /// The maximum number of times that the validator visits the current part. The validator first checks whether one
    /// of several alternatives fits. If none fits, the validator visits all alternatives again to collect their errors.
    /// Nested alternatives multiply these visits.
    times: usize,
}

impl Work<'_> {
    /// Counts the steps for checking a value against a part of the schema. Returns `None` if no steps remain.
    fn hold(&mut self, value: &Value, part: &Value) -> Option<()> {
        self.take(1)?;
        let Some(keywords) = part.as_object() else { return Some(()) };
        (0..times(keywords)).try_for_each(|_| {
            keywords.iter().try_for_each(|(keyword, part)| {
                self.take(1)?;
                self.keyword(value, keyword, part)
            })
        })
    }

    fn keyword(&mut self, value: &Value, keyword: &str, part: &Value) -> Option<()> {
        match keyword {
            "$ref" => {
                let root = self.root;
                let Some(target) = part.as_str() else { return Some(()) };
                self.take(target.len() / BYTES)?;
                let target = target.strip_prefix('#').and_then(|target| root.pointer(target));
                target.map_or(Some(()), |target| self.hold(value, target))
            }
            "anyOf" | "oneOf" => {
                self.times += 1;
                below(part).try_for_each(|part| self.hold(value, part))?;
                self.times -= 1;
                Some(())
            }
            "not" | "if" | "then" | "else" => self.hold(value, part),
            "allOf" | "dependentSchemas" | "dependencies" => below(part).try_for_each(|part| self.hold(value, part)),
            "properties" => fields(part).try_for_each(|(name, part)| match value.get(name) {
                Some(value) => self.hold(value, part),
                None => self.take(1),
            }),
            "patternProperties" => fields(part).try_for_each(|(pattern, part)| {
                fields(value).try_for_each(|(name, value)| {
                    // Count each match twice: another keyword of the same schema part, such as `additionalProperties`,
                    // matches the name again.
                    self.take(self.patterns.steps(pattern, name).saturating_mul(2))?;
                    self.hold(value, part)
                })
            }),
            "propertyNames" => fields(value).try_for_each(|(name, _)| self.hold(&Value::String(name.clone()), part)),
            "prefixItems" => below(value).zip(below(part)).try_for_each(|(value, part)| self.hold(value, part)),
            "items"
            | "additionalItems"
            | "unevaluatedItems"
            | "contains"
            | "additionalProperties"
            | "unevaluatedProperties" => below(value).try_for_each(|value| self.hold(value, part)),
            "pattern" => match (part.as_str(), value.as_str()) {
                (Some(pattern), Some(text)) => self.take(self.patterns.steps(pattern, text)),
                _ => Some(()),
            },
            // For `enum`, the validator compares the value with each item. For `uniqueItems`, the validator visits the
            // whole value.
            "enum" => below(part).try_for_each(|part| self.compare(value, part)),
            "const" => self.compare(value, part),
            "uniqueItems" => self.walk(value),
            "minLength" | "maxLength" => self.take(value.as_str().map_or(0, str::len) / BYTES),
            "required" | "dependentRequired" => self.walk(part),
            _ => Some(()),
        }
    }

    /// Counts the steps of a comparison. The comparison ends at the first difference.
    fn compare(&mut self, value: &Value, part: &Value) -> Option<()> {
        self.take(1)?;
        match (value, part) {
            (Value::String(one), Value::String(other)) => self.take(one.len().min(other.len()) / BYTES),
            (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => self.walk(value),
            _ => Some(()),
        }
    }

    /// Counts the steps for visiting each part of a value.
    fn walk(&mut self, value: &Value) -> Option<()> {
        self.take(1 + value.as_str().map_or(0, str::len) / BYTES)?;
        below(value).try_for_each(|value| self.walk(value))
    }

    fn take(&mut self, steps: usize) -> Option<()> {
        self.left = self.left.checked_sub(steps.checked_mul(self.times)?)?;
        Some(())
    }
}

fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// Returns the items of a list, or the values of an object.
fn below(value: &Value) -> impl Iterator<Item = &Value> {
    let items = value.as_array().into_iter().flatten();
    items.chain(value.as_object().into_iter().flat_map(Map::values))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use crate::settings::Schema;

    /// Returns the result of validating an annotation with a list of `items` numbers, with `rules` rules for each item.
    fn told(rules: usize, items: usize) -> Result<(), String> {
        let rules = vec![json!({"type": "string"}); rules];
        let list =
            json!({"type": "array", "x-annotation": true, "items": {"anyOf": [{"type": "integer"}, {"allOf": rules}]}});
        let schema = Schema::parse(&json!({"type": "object", "properties": {"list": list}}).to_string()).unwrap();
        let settings = schema.resolve("widget", &[]).unwrap();
        let text = json!(vec![0; items]).to_string();
        let annotations = BTreeMap::from([("settings.kaos.tools/list", text.as_str())]);
        let (told, _) = schema.annotated("widget", &settings, &annotations);
        told.map(drop).map_err(|errors| errors.to_string())
    }

    #[test]
    fn settings_that_take_too_long_to_check_are_refused_by_name() {
        assert_eq!(told(10, 1_000), Ok(()));
        assert_eq!(told(1_000, 10), Ok(()));
        assert_eq!(
            told(1_000, 1_000).unwrap_err(),
            "setting widget.list, given by settings.kaos.tools/list of an annotation of the object, is too long to be \
             checked against its schema: make it shorter"
        );
    }
    /// Returns whether the number of steps for validating a setting with this value is within the limit.
    fn is_bounded(schema: &Value, value: &Value) -> bool {
        let schema = json!({"type": "object", "properties": {"x": schema}});
        let schema = Schema::parse(&schema.to_string()).unwrap();
        super::steps(&schema, &json!({"x": value})).is_some()
    }

    #[test]
    fn a_match_counts_by_the_compiled_size_of_its_pattern() {
        let text = |bytes: usize| json!("0".repeat(bytes));
        let of = |pattern: &str| json!({"type": "string", "pattern": pattern});
        assert!(is_bounded(&of("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"), &text(100_000)));
        assert!(is_bounded(&of("^.{1,253}$"), &text(253)));
        assert!(!is_bounded(&of("^[01]*1[01]{4000}$"), &text(10_000)));
        let names = json!({"type": "object", "patternProperties": {"^[01]*1[01]{4000}$": {}}});
        assert!(!is_bounded(&names, &json!({"0".repeat(10_000): 1})));
    }

    #[test]
    fn rules_that_walk_a_whole_value_count_by_its_size() {
        let (list, text) = (json!(vec![0; 10_000]), json!("0".repeat(1_000_000)));
        let often = |rule: Value| json!({"allOf": vec![rule; 1_000]});
        assert!(!is_bounded(&often(json!({"uniqueItems": true})), &list));
        assert!(!is_bounded(&often(json!({"maxLength": 2_000_000})), &text));
        assert!(!is_bounded(&often(json!({"const": vec![0; 10]})), &list));
        for rule in [json!({"uniqueItems": true}), json!({"const": [0]}), json!({"enum": [[0], [1]]})] {
            assert!(is_bounded(&rule, &list));
        }
    }

    #[test]
    fn nested_alternatives_count_once_more_for_each_level() {
        let nested = |levels: usize| {
            let innermost = json!({"allOf": vec![json!({"type": "integer"}); 5_000]});
            (0..levels).fold(innermost, |inner, _| json!({"anyOf": [inner]}))
        };
        assert!(is_bounded(&nested(1), &json!("x")));
        assert!(!is_bounded(&nested(25), &json!("x")));
    }
}
