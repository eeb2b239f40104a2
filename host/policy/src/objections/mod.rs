//! Translates errors of a JSON Schema validator into plain words: the allowed values, the type of the wrong value, and
//! a remedy. The text never shows the wrong value, because it can be a secret.
//!
//! If a schema has alternatives (`anyOf`, `oneOf`), the text describes the alternative that the author of the value
//! probably meant, or lists the values that the alternatives allow.

mod patterns;

use jsonschema::{
    JsonType, ValidationError,
    error::{TypeKind, ValidationErrorKind},
};
use serde_json::Value;

use crate::{
    cut::{VALUE, cut},
    digest::canonical,
    near::nearest,
    settings::listed,
};

/// A problem with a value, in plain words.
#[derive(Debug)]
pub struct Objection<'a> {
    /// The validator's error, with the value and its path.
    pub error: &'a ValidationError<'a>,
    /// The condition that the value does not satisfy, such as `must be a text`.
    pub must: String,
    /// A remedy that is more specific than "correct the value"; `None` if this module knows no such remedy.
    pub remedy: Option<String>,
}

impl Objection<'_> {
    /// Returns the name of the wrong value's type, or `None` if the type is correct. The name never contains the value.
    pub fn came(&self) -> Option<&'static str> {
        let (mut types, mut names) = (Vec::new(), Vec::new());
        wanted(self.error, &mut types, &mut names);
        let value: &Value = self.error.instance();
        let fits = |of: &JsonType| *of == type_of(value) || (*of == JsonType::Integer && is_whole(value));
        (!types.is_empty() && !types.iter().any(fits)).then(|| match value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) if is_whole(value) => "a number",
            Value::Number(_) => "a number with a fraction",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        })
    }
}

fn is_whole(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// Returns the problems with the innermost wrong values.
pub fn objections<'a>(error: &'a ValidationError<'a>) -> Vec<Objection<'a>> {
    if let Some(branches) = alternatives(error) {
        let (mut values, mut nouns) = (Vec::new(), Vec::new());
        if allowed(error, &mut values, &mut nouns).is_some() {
            return vec![objection(error, format!("must be {}", either(&values, nouns)))];
        }
        let meant = branches.iter().filter(|errors| !errors.iter().any(|inner| excludes(inner, error)));
        if let Some(errors) = meant.min_by_key(|errors| errors.len()) {
            return errors.iter().flat_map(objections).collect();
        }
    }
    let must = noun(error).map_or_else(|| rule(error), |noun| format!("must be {noun}"));
    vec![objection(error, must)]
}

fn objection<'a>(error: &'a ValidationError<'a>, must: String) -> Objection<'a> {
    Objection { error, must, remedy: remedy(error) }
}

fn alternatives<'a>(error: &'a ValidationError<'_>) -> Option<&'a [Vec<ValidationError<'static>>]> {
    match error.kind() {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => Some(context),
        _ => None,
    }
}

fn is_same_place(one: &ValidationError<'_>, other: &ValidationError<'_>) -> bool {
    one.instance_path().as_str() == other.instance_path().as_str()
}

/// Returns whether an alternative excludes the value, because the alternative accepts only other types or other values.
/// The author of the value cannot have meant such an alternative.
fn excludes(inner: &ValidationError<'_>, outer: &ValidationError<'_>) -> bool {
    is_same_place(inner, outer)
        && matches!(
            inner.kind(),
            ValidationErrorKind::Type { .. } | ValidationErrorKind::Constant { .. } | ValidationErrorKind::Enum { .. }
        )
}

/// Collects the values that the alternatives list, and the names of the types that the alternatives accept. Returns
/// `None` if an alternative neither lists values nor names a type for the whole value.
fn allowed(error: &ValidationError<'_>, values: &mut Vec<String>, nouns: &mut Vec<String>) -> Option<()> {
    for errors in alternatives(error)? {
        let here = || errors.iter().filter(|inner| is_same_place(inner, error));
        let inner = here().find(|inner| exactly(inner).is_some()).or_else(|| here().next())?;
        if let Some(exact) = exactly(inner) {
            values.extend(exact.into_iter().map(shown));
        } else if alternatives(inner).is_some() {
            allowed(inner, values, nouns)?;
        } else {
            nouns.push(noun(inner)?);
        }
    }
    Some(())
}

fn either(values: &[String], mut nouns: Vec<String>) -> String {
    match values {
        [] => {}
        [only] if only == "null" => nouns.push(only.clone()),
        values => nouns.insert(0, one_of(values)),
    }
    nouns.dedup();
    nouns.join(" or ")
}

fn one_of(values: &[String]) -> String {
    if let [only] = values { only.clone() } else { format!("one of {}", listed(values)) }
}

/// Returns all accepted values, or `None` if the schema does not list accepted values.
fn exactly<'a>(error: &'a ValidationError<'_>) -> Option<Vec<&'a Value>> {
    static NULL: Value = Value::Null;
    match error.kind() {
        ValidationErrorKind::Enum { options } => Some(options.as_array()?.iter().collect()),
        ValidationErrorKind::Constant { expected_value } => Some(vec![&**expected_value]),
        ValidationErrorKind::Type { kind: TypeKind::Single(JsonType::Null) } => Some(vec![&NULL]),
        _ => None,
    }
}

fn shown(value: &Value) -> String {
    cut(&canonical(value), VALUE).into_owned()
}

/// Returns a noun for the accepted values, or `None` if this module knows no noun.
fn noun(error: &ValidationError<'_>) -> Option<String> {
    if let Some(values) = exactly(error) {
        return Some(one_of(&values.into_iter().map(shown).collect::<Vec<_>>()));
    }
    Some(match error.kind() {
        ValidationErrorKind::Type { kind: TypeKind::Single(of) } => type_name(*of).to_owned(),
        ValidationErrorKind::Type { kind: TypeKind::Multiple(types) } => {
            let mut names: Vec<_> = types.iter().map(type_name).collect();
            names.sort_by_key(|name| *name == "null");
            names.join(" or ")
        }
        ValidationErrorKind::Pattern { pattern } => patterns::noun(pattern)?.to_owned(),
        ValidationErrorKind::Format { format } => match format.as_str() {
            "date-time" => "a time such as 2026-01-31T12:00:00Z".to_owned(),
            "uri" => "a URL such as https://example.com/path".to_owned(),
            other => format!("of the format {other}"),
        },
        _ => return None,
    })
}

fn type_name(of: JsonType) -> &'static str {
    match of {
        JsonType::Array => "a list",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "a whole number",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object with fields",
        JsonType::String => "a text",
    }
}

fn type_of(value: &Value) -> JsonType {
    match value {
        Value::Null => JsonType::Null,
        Value::Bool(_) => JsonType::Boolean,
        Value::Number(_) => JsonType::Number,
        Value::String(_) => JsonType::String,
        Value::Array(_) => JsonType::Array,
        Value::Object(_) => JsonType::Object,
    }
}

/// Describes a violated condition that is neither a list of values nor a type. The text is a sentence without a
/// subject, such as `must be at least 1`.
fn rule(error: &ValidationError<'_>) -> String {
    let items = |limit: &u64, what: &str| format!("{limit} {what}{}", if *limit == 1 { "" } else { "s" });
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            format!("must have the field {}", property.as_str().unwrap_or_default())
        }
        ValidationErrorKind::Minimum { limit } => format!("must be at least {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("must be at most {limit}"),
        ValidationErrorKind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        ValidationErrorKind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        ValidationErrorKind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        ValidationErrorKind::MinLength { limit: 1 } => "must not be empty".to_owned(),
        ValidationErrorKind::MinLength { limit } => format!("must have at least {}", items(limit, "character")),
        ValidationErrorKind::MaxLength { limit } => format!("must have at most {}", items(limit, "character")),
        ValidationErrorKind::MinItems { limit } => format!("must have at least {}", items(limit, "item")),
        ValidationErrorKind::MaxItems { limit } => format!("must have at most {}", items(limit, "item")),
        ValidationErrorKind::AdditionalItems { limit } => {
            format!("must have at most {}", items(&u64::try_from(*limit).unwrap_or(u64::MAX), "item"))
        }
        ValidationErrorKind::MinProperties { limit } => format!("must have at least {}", items(limit, "field")),
        ValidationErrorKind::MaxProperties { limit } => format!("must have at most {}", items(limit, "field")),
        ValidationErrorKind::UniqueItems => "must not contain an item twice".to_owned(),
        ValidationErrorKind::Contains => "lacks a required item".to_owned(),
        ValidationErrorKind::FalseSchema => "must not be present".to_owned(),
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            format!("has fields that do not exist: {}", listed(unexpected))
        }
        ValidationErrorKind::PropertyNames { error } => {
            let objections = objections(error);
            let must: Vec<&str> = objections.iter().map(|objection| objection.must.as_str()).collect();
            let name = error.instance().as_str().unwrap_or_default();
            format!("has the field {:?}, whose name {}", cut(name, VALUE), must.join(", and "))
        }
        ValidationErrorKind::Pattern { pattern } => format!("must match the regular expression {pattern}"),
        ValidationErrorKind::Not { schema } => match schema["pattern"].as_str() {
            Some(pattern) => patterns::not(pattern)
                .map_or_else(|| format!("must not match the regular expression {pattern}"), str::to_owned),
            None => format!("must not be {}", shown(schema)),
        },
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            let branches = context.iter().filter_map(|errors| errors.first());
            let rules: Vec<String> = branches
                .map(|inner| noun(inner).map_or_else(|| rule(inner), |noun| format!("must be {noun}")))
                .collect();
            rules.join(", or ")
        }
        ValidationErrorKind::OneOfMultipleValid { .. } => {
            "must fit exactly one of several forms, but fits several".to_owned()
        }
        _ => error.masked_with("it").to_string(),
    }
}

/// Suggests a remedy if the value resembles an accepted value.
fn remedy(error: &ValidationError<'_>) -> Option<String> {
    let (mut types, mut names) = (Vec::new(), Vec::new());
    wanted(error, &mut types, &mut names);
    let wants = |of: JsonType| types.contains(&of);
    let value: &Value = error.instance();
    match value {
        Value::Number(_) | Value::Bool(_) if wants(JsonType::String) && names.is_empty() => {
            Some("put it in quotes".to_owned())
        }
        Value::String(text) => {
            let text = text.trim();
            let is_number = text.parse::<f64>().is_ok_and(f64::is_finite);
            let numbers = wants(JsonType::Number) || (wants(JsonType::Integer) && text.parse::<i64>().is_ok());
            if (is_number && numbers) || (["true", "false"].contains(&text) && wants(JsonType::Boolean)) {
                return Some("write it without quotes".to_owned());
            }
            // Skip short texts: any two texts of one or two letters are similar.
            let near = nearest(text, names).filter(|near| *near != text && text.len() > 2);
            near.map(|near| format!("write {near}"))
        }
        Value::Object(_) if wants(JsonType::Array) => Some("begin each item with -".to_owned()),
        _ => None,
    }
}

/// Collects the types and texts that the schema accepts at an error's path.
fn wanted<'a>(error: &'a ValidationError<'_>, types: &mut Vec<JsonType>, names: &mut Vec<&'a str>) {
    names.extend(exactly(error).into_iter().flatten().filter_map(Value::as_str));
    match error.kind() {
        ValidationErrorKind::Type { kind: TypeKind::Single(of) } => types.push(*of),
        ValidationErrorKind::Type { kind: TypeKind::Multiple(all) } => types.extend(all.iter()),
        ValidationErrorKind::Enum { .. } | ValidationErrorKind::Constant { .. } => {
            types.extend(exactly(error).into_iter().flatten().map(type_of));
        }
        _ => {
            let inner = alternatives(error).into_iter().flatten().flatten().filter(|inner| is_same_place(inner, error));
            inner.for_each(|inner| wanted(inner, types, names));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a text for each problem of a value: its path, the violated rule, the type of the value and the remedy.
    fn told(schema: &Value, value: &Value) -> Vec<String> {
        let validator = jsonschema::validator_for(schema).unwrap();
        let errors: Vec<_> = validator.iter_errors(value).collect();
        let told = |it: &Objection<'_>| {
            let came = it.came().map(|came| format!(", is {came}")).unwrap_or_default();
            let remedy = it.remedy.as_ref().map(|remedy| format!(": {remedy}")).unwrap_or_default();
            format!("{} {}{came}{remedy}", it.error.instance_path(), it.must)
        };
        errors.iter().flat_map(objections).map(|it| told(&it)).collect()
    }

    #[test]
    fn an_error_about_a_wrong_type_names_the_found_type_and_a_remedy() {
        for (schema, value, wanted) in [
            (json!({"type": "string"}), json!(7), " must be a text, is a number: put it in quotes"),
            (json!({"type": "string"}), json!(true), " must be a text, is true or false: put it in quotes"),
            (json!({"type": "integer"}), json!("7"), " must be a whole number, is a text: write it without quotes"),
            (json!({"type": "integer"}), json!("x"), " must be a whole number, is a text"),
            (json!({"type": "integer"}), json!(1.5), " must be a whole number, is a number with a fraction"),
            (json!({"type": "boolean"}), json!("true"), " must be true or false, is a text: write it without quotes"),
            (json!({"type": "array"}), json!({"a": 1}), " must be a list, is an object: begin each item with -"),
            (json!({"type": ["integer", "null"]}), json!([]), " must be a whole number or null, is a list"),
            (
                json!({"enum": ["Proxy", "Hosted"]}),
                json!("proxi"),
                " must be one of \"Proxy\", \"Hosted\": write Proxy",
            ),
            (json!({"pattern": "^([0-9]+(h|m|s|ms)){1,4}$"}), json!("1d"), " must be a time, such as 90s or 1h30m"),
            (json!({"pattern": "^x$"}), json!("y"), " must match the regular expression ^x$"),
            (json!({"minLength": 1}), json!(""), " must not be empty"),
            (json!({"maximum": 65535}), json!(70000), " must be at most 65535"),
            (json!({"required": ["a"]}), json!({}), " must have the field a"),
        ] {
            let told = told(&schema, &value);
            assert!(told.len() == 1 && told[0].contains(wanted.trim_start()), "{value} by {schema}: {told:?}");
        }
    }

    #[test]
    fn an_error_about_alternatives_lists_all_or_explains_the_one_that_was_meant() {
        let probe = json!({"type": "object", "required": ["port"], "properties": {"port": {"type": "integer"}}});
        let either = json!({"anyOf": [{"type": "null"}, {"type": "string"}, probe]});
        for (schema, value, wanted) in [
            (
                json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}),
                json!([]),
                "must be a whole number or a text, is a list",
            ),
            (
                json!({"oneOf": [{"const": "a"}, {"type": "integer"}]}),
                json!({}),
                "must be \"a\" or a whole number, is an object",
            ),
            (
                either.clone(),
                json!(3),
                "must be a text or an object with fields or null, is a number: put it in quotes",
            ),
            (either.clone(), json!({"port": "x"}), "/port must be a whole number, is a text"),
            (either, json!({}), "must have the field port"),
        ] {
            let told = told(&schema, &value);
            assert!(told.len() == 1 && told[0].trim_start() == wanted, "{value} by {schema}: {told:?}");
        }
    }

    #[test]
    fn an_error_about_a_field_name_gives_its_rule_and_no_error_shows_a_value() {
        let key = json!({"pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$",
            "not": {"pattern": "^(.*\\.)?kaos\\.tools/"}});
        let schema = json!({"propertyNames": key, "additionalProperties": {"type": "string", "maxLength": 3}});
        let all = told(&schema, &json!({"a b": "s3cret", "kaos.tools/x": 7})).join("\n");
        for wanted in [
            "has the field \"a b\", whose name must be the key of a label or annotation, such as app or example.com/app",
            "has the field \"kaos.tools/x\", whose name must not begin with kaos.tools/, which is reserved for the \
             operator",
            "must have at most 3 characters",
        ] {
            assert!(all.contains(wanted), "{wanted} in {all}");
        }
        assert!(!all.contains("s3cret"), "{all}");
    }
}
