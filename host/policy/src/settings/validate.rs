//! Translates each error of the JSON Schema validator to an error with the setting, the source of its value and a
//! remedy.

use jsonschema::{ValidationError, error::ValidationErrorKind};
use serde_json::Value;

use super::{Effective, Path, Schema, SettingsError, listed::listed, work};
use crate::{
    cut::{VALUE, cut},
    digest::canonical,
    objections::{Objection, objections},
};

/// The maximum number of errors in one report. When the user has corrected these errors, the next report contains the
/// remaining errors.
const TOLD: usize = 20;

impl Schema {
    /// Returns the errors in the settings, and the number of steps of the validation.
    pub(super) fn violations(&self, settings: &Effective) -> (Vec<SettingsError>, usize) {
        let Some(steps) = work::steps(self, &settings.tree) else { return (vec![too_long(settings)], work::MAX_STEPS) };
        let errors = self.validator.iter_errors(&settings.tree).flat_map(|error| self.explain(&error, settings));
        (errors.take(TOLD).collect(), steps)
    }

    fn explain(&self, error: &ValidationError<'_>, settings: &Effective) -> Vec<SettingsError> {
        objections(error).iter().flat_map(|objection| self.told(objection, settings)).collect()
    }

    fn told(&self, Objection { error, must, remedy }: &Objection<'_>, settings: &Effective) -> Vec<SettingsError> {
        let path = from_pointer(error.instance_path().as_str());
        if let ValidationErrorKind::AdditionalProperties { unexpected } = error.kind() {
            let remedy = match &self.names(&path)[..] {
                [] => "remove it".to_owned(),
                names => format!("remove it, or use one of {}", listed(names)),
            };
            return unexpected.iter().map(|name| unknown(path.then(name), &remedy, settings)).collect();
        }
        // If a schema accepts no fields, the validator reports only the value of the object's first field. Instead,
        // report the names of all fields.
        if matches!(error.kind(), ValidationErrorKind::FalseSchema)
            && let Some(Value::Object(fields)) = settings.tree.pointer(error.instance_path().as_str())
            && fields.values().next() == Some(error.instance())
        {
            return fields.keys().map(|name| unknown(path.then(name), "remove it", settings)).collect();
        }
        let remedy = remedy.as_deref().unwrap_or("correct it");
        let remedy = match self.default_at(&path) {
            Some(default) => format!("{remedy}, or remove it to get the default {default}"),
            None => remedy.to_owned(),
        };
        let message = format!("is {}, but {must}: {remedy}", told(error.instance()));
        vec![SettingsError { policy: String::new(), source: settings.source(&path).cloned(), path, message }]
    }

    fn default_at(&self, path: &Path) -> Option<String> {
        let value = path.find_in(self.defaults())?;
        Some(told(value))
    }
}

fn unknown(path: Path, remedy: &str, settings: &Effective) -> SettingsError {
    let message = format!("does not exist: {remedy}");
    SettingsError { policy: String::new(), source: settings.source(&path).cloned(), path, message }
}

fn told(value: &Value) -> String {
    cut(&canonical(value), VALUE).into_owned()
}

/// Returns the error for settings whose validation would take too long. The error names the longest setting.
fn too_long(settings: &Effective) -> SettingsError {
    let given = settings.tree.as_object().into_iter().flatten();
    let longest = given.max_by_key(|(_, value)| canonical(value).len());
    let path = longest.map_or_else(Path::default, |(name, _)| Path::default().then(name));
    let message = "is too long to be checked against its schema: make it shorter".to_owned();
    SettingsError { policy: String::new(), source: settings.source(&path).cloned(), path, message }
}

fn from_pointer(pointer: &str) -> Path {
    pointer.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::settings::{Layer, Origin};

    /// Returns the error for a setting with this schema and this value.
    fn refused(schema: &Value, value: &Value) -> String {
        let schema = json!({"type": "object", "additionalProperties": false, "properties": {"kind": schema}});
        let layer = Layer::tree(Origin::CommandLine, "kite", json!({"kind": value}));
        Schema::parse(&schema.to_string()).unwrap().resolve("kite", &[layer]).unwrap_err().to_string()
    }

    #[test]
    fn the_error_lists_the_allowed_values() {
        let one = |value: &str| json!({"const": value, "description": "One.", "type": "string"});
        let either = json!({"oneOf": [one("Always"), one("Never")]});
        let mut with_default = either.clone();
        with_default["default"] = json!("Never");
        for (schema, given, told) in [
            (&either, json!("Foo"), "\"Foo\", but must be one of \"Always\", \"Never\": correct it"),
            (&either, json!(3), "3, but must be one of \"Always\", \"Never\": correct it"),
            (
                &with_default,
                json!("Foo"),
                "\"Foo\", but must be one of \"Always\", \"Never\": correct it, or remove it to get the default \"Never\"",
            ),
            (
                &json!({"anyOf": [either, {"type": "null"}]}),
                json!("Foo"),
                "\"Foo\", but must be one of \"Always\", \"Never\", null: correct it",
            ),
            (&json!({"enum": [1, 2]}), json!(3), "3, but must be one of 1, 2: correct it"),
            (&json!({"const": "a"}), json!("b"), "\"b\", but must be \"a\": correct it"),
        ] {
            assert_eq!(refused(schema, &given), format!("setting kite.kind, given by --set, is {told}"));
        }
        let many: Vec<u32> = (0..100).collect();
        let told = refused(&json!({"enum": many}), &json!("x"));
        assert!(told.contains("30, 31, and 68 more: correct it"), "{told}");
    }

    #[test]
    fn the_error_for_a_nearly_right_value_says_how_to_write_it() {
        for (schema, given, told) in [
            (json!({"type": "string"}), json!(3), "3, but must be a text: put it in quotes"),
            (
                json!({"type": "integer", "default": 1}),
                json!("3"),
                "\"3\", but must be a whole number: write it without quotes, or remove it to get the default 1",
            ),
            (
                json!({"enum": ["Always", "Never"]}),
                json!("always"),
                "\"always\", but must be one of \"Always\", \"Never\": write Always",
            ),
            (
                json!({"oneOf": [{"const": "a"}, {"type": "integer"}]}),
                json!("b"),
                "\"b\", but must be \"a\" or a whole number: correct it",
            ),
            (
                json!({"pattern": "^/"}),
                json!("x"),
                "\"x\", but must be a path that begins with /, such as /health: correct it",
            ),
        ] {
            assert_eq!(refused(&schema, &given), format!("setting kite.kind, given by --set, is {told}"));
        }
    }

    #[test]
    fn the_error_is_about_the_alternative_that_was_meant() {
        let either = json!({"anyOf": [{"type": "object", "properties": {"a": {"const": 1}}}, {"const": "a"}]});
        let told = refused(&either, &json!({"a": 2}));
        assert_eq!(told, "setting kite.kind.a, given by --set, is 2, but must be 1: correct it");
    }

    #[test]
    fn no_setting_is_suggested_if_the_schema_has_none() {
        let told = refused(&json!({"type": "object", "additionalProperties": false}), &json!({"a": 1}));
        assert!(told.ends_with("kite.kind.a, given by --set, does not exist: remove it"), "{told}");
    }
}
