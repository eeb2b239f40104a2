//! Translates the structural schema of a CRD into an equivalent JSON Schema.

use serde_json::{Map, Value, json};

/// Returns the schema of whole objects of a kind, including metadata.
pub(super) fn of_kind(structural: &Value) -> Value {
    let mut schema = translate(structural);
    schema["properties"]["metadata"] = metadata();
    schema
}

/// Returns a schema for those fields of `metadata` that users write.
pub(super) fn metadata() -> Value {
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    json!({
        "type": "object",
        "properties": {
            "name": {
                "type": "string",
                "maxLength": 253,
                "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
            },
            "labels": texts,
            "annotations": texts,
            "finalizers": {"type": "array", "items": {"type": "string"}},
        },
    })
}

fn translate(schema: &Value) -> Value {
    let Some(fields) = schema.as_object() else { return schema.clone() };
    let mut result = Map::new();
    for (keyword, value) in fields {
        let translated = match keyword.as_str() {
            "properties" => value.as_object().map_or(Value::Null, |properties| {
                properties.iter().map(|(name, schema)| (name.clone(), translate(schema))).collect()
            }),
            "items" | "additionalProperties" | "not" => translate(value),
            "allOf" | "anyOf" | "oneOf" => value.as_array().into_iter().flatten().map(translate).collect(),
            "type" | "enum" | "required" | "pattern" | "multipleOf" | "uniqueItems" | "minimum" | "maximum"
            | "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => value.clone(),
            _ => continue,
        };
        result.insert(keyword.clone(), translated);
    }
    // In OpenAPI 3.0, `exclusiveMinimum` and `exclusiveMaximum` are flags beside the limit; in JSON Schema, they are
    // the limit.
    for (flag, limit, exclusive) in
        [("exclusiveMinimum", "minimum", "exclusiveMinimum"), ("exclusiveMaximum", "maximum", "exclusiveMaximum")]
    {
        if fields.get(flag) == Some(&Value::Bool(true))
            && let Some(value) = result.remove(limit)
        {
            result.insert(exclusive.to_owned(), value);
        }
    }
    if fields.get("x-kubernetes-list-type").is_some_and(|kind| kind == "set") {
        result.insert("uniqueItems".to_owned(), true.into());
    }
    if fields.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        result.remove("anyOf");
        result.insert("type".to_owned(), json!(["integer", "string"]));
    }
    if fields.get("format").is_some_and(|format| format == "int32") {
        result.entry("minimum").or_insert(i32::MIN.into());
        result.entry("maximum").or_insert(i32::MAX.into());
    }
    if fields.get("nullable") == Some(&Value::Bool(true)) {
        return json!({"anyOf": [{"type": "null"}, result]});
    }
    Value::Object(result)
}
