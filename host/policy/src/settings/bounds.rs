//! Limits the expanded size of a schema before the host builds a validator.
//!
//! A validator copies the target of each `$ref`. So a few kilobytes of nested references can expand beyond any
//! machine's memory, and a long chain of references can overflow the stack. This module visits every value of the
//! schema with every `$ref` expanded, and stops at the limits.

use serde_json::{Map, Value};

use super::SchemaError;
use crate::cut::{VALUE, cut};

/// The maximum size of a schema in bytes.
const BYTES: usize = 256 << 10;
/// The maximum number of values in a schema with each `$ref` expanded. The largest schema of the default policies has
/// seven hundred values.
const VALUES: usize = 20_000;
/// The maximum depth of a schema with each `$ref` expanded.
const LEVELS: usize = 64;
/// Keywords of references other than `$ref`, and keywords that change the target of a `$ref`.
const FOREIGN: [&str; 6] = ["$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$schema"];

/// Refuses a text that is too long to parse.
pub(super) fn length(text: &str) -> Result<(), SchemaError> {
    if text.len() > BYTES {
        return Err(SchemaError::TooLong { bytes: text.len(), limit: BYTES });
    }
    Ok(())
}

/// Refuses a schema that expands beyond the limits. Also refuses a schema with a reference to anything outside of the
/// schema.
pub(super) fn check(root: &Value) -> Result<(), SchemaError> {
    BoundsWalk { root, left: VALUES, path: Vec::new(), references: Vec::new() }.value(root, 0)
}

/// Formats a path in a schema for messages.
pub(super) fn located(path: &[&str]) -> String {
    cut(&format!("#/{}", path.join("/")), VALUE).into_owned()
}

/// Returns the maximum number of times that a validator checks a value with this part of a schema. With an
/// `unevaluated…` keyword, the validator checks all other keywords again, to find the values that no keyword has
/// checked.
pub(super) fn times(part: &Map<String, Value>) -> usize {
    if part.contains_key("unevaluatedProperties") || part.contains_key("unevaluatedItems") { 3 } else { 1 }
}

/// The state while the host visits all values of a schema.
struct BoundsWalk<'a> {
    root: &'a Value,
    left: usize,
    path: Vec<&'a str>,
    /// The targets of the references on the way to the current value.
    references: Vec<&'a str>,
}

impl<'a> BoundsWalk<'a> {
    fn value(&mut self, value: &'a Value, level: usize) -> Result<(), SchemaError> {
        if level > LEVELS {
            return Err(SchemaError::TooDeep { path: self.here(), limit: LEVELS });
        }
        let Some(left) = self.left.checked_sub(1) else {
            return Err(SchemaError::TooMuch { path: self.here(), limit: VALUES });
        };
        self.left = left;
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.value(item, level + 1)),
            Value::Object(fields) => (0..times(fields)).try_for_each(|_| self.fields(fields, level + 1)),
            _ => Ok(()),
        }
    }

    /// Visits every field. Treats a field with the name of a keyword like the keyword, even inside of a default or an
    /// example. So the host may refuse a valid schema, but never overlooks a reference.
    fn fields(&mut self, fields: &'a Map<String, Value>, level: usize) -> Result<(), SchemaError> {
        for (name, value) in fields {
            self.path.push(name);
            match value {
                Value::String(target) if name == "$ref" => self.follow(target, level)?,
                Value::String(_) if FOREIGN.contains(&name.as_str()) && !self.says_what_it_is(name) => {
                    return Err(SchemaError::Foreign { path: self.here() });
                }
                _ => self.value(value, level)?,
            }
            self.path.pop();
        }
        Ok(())
    }

    fn follow(&mut self, target: &'a str, level: usize) -> Result<(), SchemaError> {
        let root = self.root;
        // Refuse `%` in references: a parser that decodes `%` escapes may find another part of the schema.
        let found = target.strip_prefix('#').filter(|way| !way.contains('%')).and_then(|way| root.pointer(way));
        let Some(found) = found else {
            return Err(SchemaError::Reference { path: self.here(), target: cut(target, VALUE).into_owned() });
        };
        if self.references.contains(&target) {
            return Err(SchemaError::Circular { path: self.here() });
        }
        self.references.push(target);
        self.value(found, level)?;
        self.references.pop();
        Ok(())
    }

    /// Returns whether a field only names the JSON Schema version or the schema's own id.
    fn says_what_it_is(&self, name: &str) -> bool {
        ["$schema", "$id"].contains(&name) && self.path.len() == 1
    }

    fn here(&self) -> String {
        located(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::settings::Schema;

    fn refused(schema: &Value) -> SchemaError {
        Schema::parse(&schema.to_string()).unwrap_err()
    }

    /// Returns a schema with `count` definitions in `$defs`. Each definition refers to the next definition.
    fn row(count: usize, of_next: impl Fn(Value) -> Value) -> Value {
        let mut definitions: Map<String, Value> =
            (0..count).map(|n| (format!("d{n}"), of_next(json!({"$ref": format!("#/$defs/d{}", n + 1)})))).collect();
        definitions.insert(format!("d{count}"), json!({"type": "string"}));
        json!({"$ref": "#/$defs/d0", "$defs": definitions})
    }

    #[test]
    fn the_default_policies_schemas_are_far_below_the_bounds() {
        let guests = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../guest-policies")).unwrap();
        let schemas =
            guests.filter_map(|guest| std::fs::read_to_string(guest.unwrap().path().join("settings.schema.json")).ok());
        let schemas: Vec<String> = schemas.collect();
        assert!(schemas.len() >= 4, "the default policies and the template have schemas");
        for text in &schemas {
            let root: Value = serde_json::from_str(text).unwrap();
            let mut walk = BoundsWalk { root: &root, left: VALUES / 10, path: Vec::new(), references: Vec::new() };
            assert_eq!(walk.value(&root, LEVELS / 2), Ok(()));
            // The SDK removes the whitespace between tokens before it puts the schema into the component.
            assert!(root.to_string().len() < BYTES / 8);
            assert!(Schema::parse(text).is_ok());
        }
    }

    #[test]
    fn a_schema_that_expands_too_far_is_refused_before_a_validator_is_built() {
        let doubling = row(60, |next| json!({"allOf": [next, next]}));
        assert!(matches!(refused(&doubling), SchemaError::TooDeep { .. } | SchemaError::TooMuch { .. }));
        let twenty = row(20, |next| json!({"allOf": [next, next]}));
        let error = refused(&twenty);
        assert!(matches!(&error, SchemaError::TooMuch { path, .. } if path.starts_with("#/$")), "{error}");
        let left_over = (0..16)
            .fold(json!({"type": "object"}), |inner, _| json!({"unevaluatedProperties": false, "allOf": [inner]}));
        assert!(matches!(refused(&left_over), SchemaError::TooMuch { .. }));
        assert_eq!(check(&row(5, |next| json!({"allOf": [next, next]}))), Ok(()));
    }

    #[test]
    fn a_long_chain_of_references_is_refused_before_it_is_followed() {
        assert!(matches!(refused(&row(2_000, |next| next)), SchemaError::TooDeep { limit: LEVELS, .. }));
        assert_eq!(check(&row(20, |next| next)), Ok(()));
    }

    #[test]
    fn references_outside_of_the_schema_and_circular_references_are_refused() {
        for target in ["https://example.com/a", "other.json", "#/$defs/none", "#name", "#/%24defs/a", "a#/$defs/a"] {
            let error = refused(&json!({"properties": {"p": {"$ref": target}}, "$defs": {"a": {}}}));
            let expected = SchemaError::Reference { path: "#/properties/p/$ref".into(), target: target.into() };
            assert_eq!(error, expected);
        }
        let circle = json!({"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}});
        assert!(matches!(refused(&circle), SchemaError::Circular { .. }));
        assert!(matches!(refused(&json!({"items": {"$ref": "#"}})), SchemaError::Circular { .. }));
        for keyword in FOREIGN {
            let error = refused(&json!({"properties": {"p": {keyword: "https://example.com/a"}}}));
            assert_eq!(error, SchemaError::Foreign { path: format!("#/properties/p/{keyword}") });
        }
        let named_like_keywords = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "properties":
            {"$id": {"type": "string"}, "$ref": {"type": "string"}, "pattern": {"type": "string"}}});
        assert!(Schema::parse(&named_like_keywords.to_string()).is_ok());
    }

    #[test]
    fn a_schema_that_is_too_long_is_refused() {
        let error = refused(&json!({"description": "x".repeat(BYTES)}));
        assert!(matches!(error, SchemaError::TooLong { limit: BYTES, .. }), "{error}");
    }
}
