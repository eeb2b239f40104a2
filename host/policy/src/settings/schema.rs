//! A policy's settings schema: the settings, their defaults, and the environment variables that set them.

use std::collections::BTreeMap;

use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};

use super::{
    Path, SchemaError, SettingsErrors, bounds,
    patterns::{self, PATTERN, Patterns},
};

/// The maximum number of settings in one schema.
const SETTINGS: usize = 2_000;
/// The maximum depth of settings.
const DEPTH: usize = 16;
/// The maximum number of schema parts that the host reads for one setting. Only the validator reads further parts.
const FACETS: usize = 256;

/// A checked schema. The defaults in the schema fit the schema.
pub struct Schema {
    root: Value,
    defaults: Value,
    variables: BTreeMap<String, Path>,
    pub(super) validator: jsonschema::Validator,
    pub(super) patterns: Patterns,
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schema").field("root", &self.root).finish_non_exhaustive()
    }
}

/// Formats a validator's error. If the error is about a pattern, adds that the pattern may be too long, because the
/// validator's message does not mention this cause.
fn told(error: &jsonschema::ValidationError<'_>) -> String {
    let is_pattern = matches!(error.kind(), ValidationErrorKind::Format { format } if format == "regex");
    if !is_pattern {
        return error.to_string();
    }
    let (path, limit) = (error.instance_path().as_str(), PATTERN >> 10);
    format!("#{path}: {error}, or the pattern has more than {limit} KiB when compiled: use maxLength for lengths")
}

impl Schema {
    /// Parses and checks a schema. Returns an error if a reference points outside of the schema.
    pub fn parse(text: &str) -> Result<Self, SchemaError> {
        bounds::length(text)?;
        let root: Value = serde_json::from_str(text).map_err(|error| SchemaError::NotJson(error.to_string()))?;
        if !root.is_object() {
            return Err(SchemaError::Invalid("the schema must be an object".to_owned()));
        }
        bounds::check(&root)?;
        let patterns = Patterns::of(&root)?;
        let validator = patterns::options().build(&root).map_err(|error| SchemaError::Invalid(told(&error)))?;
        let (defaults, variables) = (Value::Object(Map::new()), BTreeMap::new());
        let mut schema = Self { root, defaults, variables, validator, patterns };
        let mut walk = Walk { schema: &schema, variables: BTreeMap::new(), seen: 0 };
        let defaults = walk.node(&schema.root, &Path::default(), 0)?;
        schema.variables = walk.variables;
        schema.defaults = defaults.unwrap_or_else(|| Value::Object(Map::new()));
        schema.resolve("", &[]).map_err(|errors: SettingsErrors| SchemaError::Defaults(errors))?;
        Ok(schema)
    }

    /// Returns the schema's JSON document.
    pub fn document(&self) -> &Value {
        &self.root
    }

    /// Returns all defaults, as one object.
    pub fn defaults(&self) -> &Value {
        &self.defaults
    }

    /// Returns each variable that sets a setting, with the setting's path.
    pub fn variables(&self) -> &BTreeMap<String, Path> {
        &self.variables
    }

    /// Returns whether the schema has this setting or group of settings.
    pub fn has(&self, path: &Path) -> bool {
        !path.names().is_empty() && !self.facets(path).is_empty()
    }

    /// Returns each setting that contains no other declared settings. Also returns the parts of the schema that
    /// describe the setting.
    pub fn leaves(&self) -> Vec<(Path, Vec<&Value>)> {
        let mut leaves = Vec::new();
        self.collect_leaves(&self.root, &Path::default(), &mut leaves);
        leaves
    }

    fn collect_leaves<'a>(&'a self, node: &'a Value, path: &Path, leaves: &mut Vec<(Path, Vec<&'a Value>)>) {
        let facets = self.expand(node);
        let inner: BTreeMap<&String, &Value> =
            facets.iter().filter_map(|facet| facet["properties"].as_object()).flatten().collect();
        if inner.is_empty() && !path.names().is_empty() {
            leaves.push((path.clone(), facets));
            return;
        }
        for (name, property) in inner {
            self.collect_leaves(property, &path.then(name), leaves);
        }
    }

    /// Returns whether the schema lets annotations of objects set the setting at `path` or a setting that contains it.
    pub fn annotatable(&self, path: &Path) -> bool {
        path.prefixes().any(|prefix| self.facets(&prefix).iter().any(|facet| facet["x-annotation"] == true))
    }

    /// Returns whether the schema lets only the operator's owner set the setting at `path` or a setting that contains
    /// it.
    pub fn is_owners(&self, path: &Path) -> bool {
        path.prefixes().any(|prefix| self.facets(&prefix).iter().any(|facet| facet["x-owner"] == true))
    }

    /// Returns the types that the schema allows for the value at a path. Returns no types if the schema allows all
    /// types.
    pub(super) fn types(&self, path: &Path) -> Vec<&str> {
        let mut types = Vec::new();
        for facet in self.facets(path) {
            match &facet["type"] {
                Value::String(one) => types.push(one.as_str()),
                Value::Array(several) => types.extend(several.iter().filter_map(Value::as_str)),
                _ => {}
            }
        }
        types
    }

    /// Returns the names of the settings directly below a path, for messages.
    pub(super) fn names(&self, path: &Path) -> Vec<&str> {
        let facets = self.facets(path);
        facets
            .iter()
            .filter_map(|facet| facet["properties"].as_object())
            .flat_map(Map::keys)
            .map(String::as_str)
            .collect()
    }

    /// Returns every part of the schema that describes the value at a path.
    fn facets(&self, path: &Path) -> Vec<&Value> {
        let mut facets = self.expand(&self.root);
        for name in path.names() {
            let named: Vec<&Value> = facets.iter().filter_map(|facet| facet["properties"].get(name)).collect();
            let open = || {
                facets
                    .iter()
                    .filter_map(|facet| {
                        facet["additionalProperties"].as_object().map(|_| &facet["additionalProperties"])
                    })
                    .collect()
            };
            let next = if named.is_empty() { open() } else { named };
            facets = next.into_iter().flat_map(|node| self.expand(node)).take(FACETS).collect();
        }
        facets
    }

    /// Returns a part of the schema, and all parts that this part refers to or combines.
    fn expand<'a>(&'a self, node: &'a Value) -> Vec<&'a Value> {
        let mut facets = vec![node];
        let mut next = 0;
        // This loop ends, because `facets` never has more than `FACETS` parts.
        while let Some(&facet) = facets.get(next) {
            next += 1;
            let target = facet["$ref"].as_str().and_then(|target| self.root.pointer(target.strip_prefix('#')?));
            let combined = ["allOf", "anyOf", "oneOf"].map(|several| facet[several].as_array().into_iter().flatten());
            let left = FACETS.saturating_sub(facets.len());
            facets.extend(target.into_iter().chain(combined.into_iter().flatten()).take(left));
        }
        facets
    }
}

/// Visits every setting once, outer settings first.
struct Walk<'a> {
    schema: &'a Schema,
    variables: BTreeMap<String, Path>,
    seen: usize,
}

impl Walk<'_> {
    /// Returns the default of a node in the schema. Combines the node's own default with the defaults of all nodes
    /// below. Returns `None` if there is no default.
    fn node(&mut self, node: &Value, path: &Path, depth: usize) -> Result<Option<Value>, SchemaError> {
        self.seen += 1;
        if depth > DEPTH || self.seen > SETTINGS {
            return Err(SchemaError::TooLarge { limit: SETTINGS, depth: DEPTH });
        }
        let facets = self.schema.expand(node);
        if let Some(variable) = facets.iter().find_map(|facet| facet["x-env"].as_str())
            && let Some(first) = self.variables.insert(variable.to_owned(), path.clone())
        {
            return Err(SchemaError::AmbiguousVariable { variable: variable.to_owned(), first, second: path.clone() });
        }
        let mut default = facets.iter().find_map(|facet| facet.get("default")).cloned();
        for (name, property) in facets.iter().filter_map(|facet| facet["properties"].as_object()).flatten() {
            let Some(inner) = self.node(property, &path.then(name), depth + 1)? else { continue };
            if let Value::Object(object) = default.get_or_insert_with(|| Value::Object(Map::new())) {
                match object.get_mut(name) {
                    Some(own) => fill(own, &inner),
                    None => drop(object.insert(name.clone(), inner)),
                }
            }
        }
        Ok(default)
    }
}

/// Adds the fields of the inner default to the outer default. Keeps the fields that the outer default already has.
fn fill(outer: &mut Value, inner: &Value) {
    if let (Value::Object(outer), Value::Object(inner)) = (outer, inner) {
        for (name, value) in inner {
            match outer.get_mut(name) {
                Some(own) => fill(own, value),
                None => drop(outer.insert(name.clone(), value.clone())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_behind_many_alternatives_are_known() {
        let name = |number: usize| format!("s{number}");
        let part =
            |number| (name(number), json!({"properties": {name(number): {"type": "integer", "default": number}}}));
        let parts: Map<String, Value> = (0..20).map(part).collect();
        let alternatives: Vec<Value> = parts.keys().map(|part| json!({"$ref": format!("#/$defs/{part}")})).collect();
        let root = json!({"type": "object", "anyOf": alternatives, "$defs": parts});
        let schema = Schema::parse(&root.to_string()).unwrap();
        assert_eq!((schema.leaves().len(), &schema.defaults()["s19"]), (20, &json!(19)));
        let path = Path::default().then("s19");
        assert!(schema.has(&path));
        assert_eq!(schema.types(&path), ["integer"]);
    }
}
