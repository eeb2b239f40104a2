//! Decides whether the schema of a kind or of settings declares the path that an origin names.

use serde_json::Value;

use super::path::{PathStep, Selector};

/// The maximum number of parts of a schema that describe one value.
const FACETS: usize = 64;

/// Returns whether the schema may allow a value at this path. Returns true for a path into a part that declares no
/// fields or allows any fields. In a JSON Schema without `additionalProperties`, only the declared fields count.
pub(crate) fn may_have(schema: &Value, path: &[Selector]) -> bool {
    let mut facets = expand(schema, [schema]);
    for selector in path {
        let next: Vec<&Value> = match selector {
            Selector::Step(PathStep::Name(name)) => {
                if facets.iter().any(|facet| is_open(facet)) || !facets.iter().any(|facet| has_fields(facet)) {
                    return true;
                }
                facets.iter().filter_map(|facet| facet["properties"].get(name)).collect()
            }
            Selector::Step(PathStep::Index(_)) | Selector::Item(_) => {
                let items: Vec<&Value> = facets.iter().filter_map(|facet| facet.get("items")).collect();
                if items.is_empty() {
                    return true;
                }
                items
            }
        };
        if next.is_empty() {
            return false;
        }
        facets = expand(schema, next);
    }
    true
}

/// Returns whether a part of a schema declares fields.
fn has_fields(facet: &Value) -> bool {
    facet["properties"].as_object().is_some_and(|fields| !fields.is_empty())
}

/// Returns whether a part of a schema allows fields that it does not declare.
fn is_open(facet: &Value) -> bool {
    let others = &facet["additionalProperties"];
    others.is_object()
        || others == true
        || facet.get("patternProperties").is_some()
        || facet["x-kubernetes-preserve-unknown-fields"] == true
        || facet["x-kubernetes-embedded-resource"] == true
}

/// Returns the parts of a schema, and all parts that they refer to or combine.
fn expand<'a>(root: &'a Value, parts: impl IntoIterator<Item = &'a Value>) -> Vec<&'a Value> {
    let mut facets: Vec<&Value> = parts.into_iter().take(FACETS).collect();
    let mut next = 0;
    while next < facets.len() {
        let facet = facets[next];
        next += 1;
        let target = facet["$ref"].as_str().and_then(|target| root.pointer(target.strip_prefix('#')?));
        let combined = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|several| facet[several].as_array());
        let left = FACETS.saturating_sub(facets.len());
        facets.extend(target.into_iter().chain(combined.flatten()).take(left));
    }
    facets
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::origins::path::parse;

    #[test]
    fn only_a_place_that_the_schema_excludes_is_missing() {
        let schema = json!({"type": "object", "$defs": {"probe": {"properties": {"path": {"type": "string"}}}},
            "properties": {
                "image": {"type": "string"},
                "resources": {"type": "object"},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "probe": {"allOf": [{"$ref": "#/$defs/probe"}], "properties": {"port": {"type": "integer"}}},
                "env": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
                "pod": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {}}},
            },
        });
        for (path, expected) in [
            ("image", true),
            ("image.tag", true),
            ("imagee", false),
            ("resources.limits.cpu", true),
            ("labels[\"example.com/team\"]", true),
            ("probe.path", true),
            ("probe.port", true),
            ("probe.host", false),
            ("env[0].name", true),
            ("env[name=\"A\"].name", true),
            ("env[0].nam", false),
            ("pod.b.c", true),
        ] {
            assert_eq!(may_have(&schema, &parse(path).unwrap()), expected, "{path}");
        }
        assert!(may_have(&json!({}), &parse("a.b").unwrap()) && may_have(&schema, &[]));
    }
}
