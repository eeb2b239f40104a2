//! The validations of values in a structural schema: ranges, lengths, patterns, enums and combinations (`allOf`,
//! `anyOf`, `oneOf`, `not`).

use regex::Regex;
use serde_json::Value;

use super::pattern;

/// The constraints on a value, except its type. `N` is the type of nested schemas.
#[derive(Debug, Clone, Default)]
pub(crate) struct Limits<N> {
    pub(crate) choices: Option<Vec<Value>>,
    pub(crate) minimum: Option<f64>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) maximum: Option<f64>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) min_length: Option<usize>,
    pub(crate) max_length: Option<usize>,
    pub(crate) pattern: Option<(String, Option<Regex>)>,
    pub(crate) format: Option<String>,
    pub(crate) min_items: Option<usize>,
    pub(crate) max_items: Option<usize>,
    pub(crate) unique_items: bool,
    pub(crate) min_properties: Option<usize>,
    pub(crate) max_properties: Option<usize>,
    pub(crate) all_of: Vec<N>,
    pub(crate) any_of: Vec<N>,
    pub(crate) one_of: Vec<N>,
    pub(crate) not: Option<N>,
}

impl<N> Limits<N> {
    /// Reads the constraints of a schema. Reads nested schemas with `read`. Returns `None` if the schema has no
    /// constraints.
    pub(crate) fn read(schema: &Value, read: impl Fn(&Value) -> N) -> Option<Self> {
        const KEYS: [&str; 17] = [
            "enum",
            "minimum",
            "maximum",
            "multipleOf",
            "minLength",
            "maxLength",
            "pattern",
            "format",
            "minItems",
            "maxItems",
            "uniqueItems",
            "minProperties",
            "maxProperties",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
        ];
        if !KEYS.iter().any(|key| schema.get(key).is_some()) {
            return None;
        }
        let size = |key: &str| schema[key].as_u64().and_then(|size| usize::try_from(size).ok());
        let nodes = |key: &str| schema[key].as_array().into_iter().flatten().map(&read).collect();
        Some(Self {
            choices: schema["enum"].as_array().cloned(),
            minimum: schema["minimum"].as_f64(),
            exclusive_minimum: schema["exclusiveMinimum"] == true,
            maximum: schema["maximum"].as_f64(),
            exclusive_maximum: schema["exclusiveMaximum"] == true,
            multiple_of: schema["multipleOf"].as_f64(),
            min_length: size("minLength"),
            max_length: size("maxLength"),
            pattern: schema["pattern"].as_str().map(|text| (text.to_owned(), pattern::compile(text).ok())),
            format: schema["format"].as_str().map(str::to_owned),
            min_items: size("minItems"),
            max_items: size("maxItems"),
            unique_items: schema["uniqueItems"] == true,
            min_properties: size("minProperties"),
            max_properties: size("maxProperties"),
            all_of: nodes("allOf"),
            any_of: nodes("anyOf"),
            one_of: nodes("oneOf"),
            not: schema.get("not").map(&read),
        })
    }
}
