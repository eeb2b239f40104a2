//! Limits the work of validating settings.
//!
//! A validator checks each value against every part of the schema that describes it, and collects an error for each. A
//! long list in an annotation, under a schema with many rules for each item, can take too long and produce more errors
//! than fit into memory. So this module counts the steps in the validator's order first, and stops at a limit.

use serde_json::{Map, Value};

use super::bounds::times;

/// The most steps: one for each check of a value against a keyword, and one for each byte of text that a pattern
/// checks.
const STEPS: usize = 200_000;

/// Whether the validation of settings against a schema stays within the limit.
pub(super) fn is_bounded(root: &Value, settings: &Value) -> bool {
    Work { root, left: STEPS }.hold(settings, root).is_some()
}

/// The remaining steps.
struct Work<'a> {
    root: &'a Value,
    left: usize,
}

impl Work<'_> {
    /// Counts the check of a value against a part of the schema. Returns `None` if no steps are left.
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
                let target = part.as_str().and_then(|target| root.pointer(target.strip_prefix('#')?));
                target.map_or(Some(()), |target| self.hold(value, target))
            }
            "not" | "if" | "then" | "else" => self.hold(value, part),
            "allOf" | "anyOf" | "oneOf" | "dependentSchemas" | "dependencies" => {
                below(part).try_for_each(|part| self.hold(value, part))
            }
            "properties" => fields(part).try_for_each(|(name, part)| match value.get(name) {
                Some(value) => self.hold(value, part),
                None => self.take(1),
            }),
            "patternProperties" => fields(part).try_for_each(|(_, part)| {
                fields(value).try_for_each(|(name, value)| {
                    self.take(name.len())?;
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
            "pattern" => self.take(value.as_str().map_or(0, str::len)),
            "enum" => self.take(below(part).count()),
            _ => Some(()),
        }
    }

    fn take(&mut self, steps: usize) -> Option<()> {
        self.left = self.left.checked_sub(steps)?;
        Some(())
    }
}

fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// The items of a list, or the values of an object.
fn below(value: &Value) -> impl Iterator<Item = &Value> {
    let items = value.as_array().into_iter().flatten();
    items.chain(value.as_object().into_iter().flat_map(Map::values))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use crate::settings::Schema;

    /// The result of a list with `items` numbers in an annotation, under a schema with `rules` rules for each item.
    fn told(rules: usize, items: usize) -> Result<(), String> {
        let rules = vec![json!({"type": "string"}); rules];
        let list =
            json!({"type": "array", "x-annotation": true, "items": {"anyOf": [{"type": "integer"}, {"allOf": rules}]}});
        let schema = Schema::parse(&json!({"type": "object", "properties": {"list": list}}).to_string()).unwrap();
        let settings = schema.resolve("widget", &[]).unwrap();
        let text = json!(vec![0; items]).to_string();
        let annotations = BTreeMap::from([("settings.kaos.tools/list", text.as_str())]);
        schema.annotated("widget", &settings, &annotations).map(drop).map_err(|errors| errors.to_string())
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
}
