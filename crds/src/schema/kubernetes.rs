//! Schemas of Kubernetes' own sub-objects. The schemas are open, so that the API server keeps fields of newer
//! Kubernetes versions, `null` and merge directives. For `kubectl explain`, the schemas list the name of each field and
//! the first sentence of its description.

use k8s_openapi::api::core::v1::{PodSpec, SecurityContext, VolumeMount};
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use serde_json::{Map, Value, json};

use crate::KeySelector;

/// The pattern of a Kubernetes quantity.
pub(crate) const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

pub(crate) fn pod_spec(_: &mut SchemaGenerator) -> Schema {
    open::<PodSpec>(true).into()
}

pub(crate) fn security_context(_: &mut SchemaGenerator) -> Schema {
    open::<SecurityContext>(false).into()
}

pub(crate) fn volume_mounts(_: &mut SchemaGenerator) -> Schema {
    let mount = open::<VolumeMount>(false);
    json_schema!({"type": "array", "items": mount})
}

pub(crate) fn resources(_: &mut SchemaGenerator) -> Schema {
    let quantities = |description: &str| {
        json!({
            "description": description,
            "type": "object",
            "additionalProperties": {"anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": QUANTITY, "x-kubernetes-int-or-string": true},
        })
    };
    json_schema!({
        "type": "object",
        "properties": {
            "claims": {
                "description": "The names of entries of podSpec.resourceClaims that the container uses.",
                "type": "array",
                "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            },
            "limits": quantities("The maximum amounts that the container may use, for example memory: 512Mi."),
            "requests": quantities("The amounts that are reserved for the container, for example cpu: 200m."),
        },
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

pub(crate) fn env_source(generator: &mut SchemaGenerator) -> Schema {
    let key = |generator: &mut SchemaGenerator, description: &str| {
        let mut schema = KeySelector::json_schema(generator);
        schema.insert("description".into(), description.into());
        schema.insert("x-kubernetes-preserve-unknown-fields".into(), true.into());
        schema
    };
    let secret = key(generator, "A key of a Secret in the same namespace.");
    let config_map = key(generator, "A key of a ConfigMap in the same namespace.");
    json_schema!({
        "type": "object",
        "properties": {
            "configMapKeyRef": config_map,
            "fieldRef": {
                "description": "A field of the pod, for example fieldPath: metadata.name.",
                "type": "object",
                "properties": {"apiVersion": {"type": "string"}, "fieldPath": {"type": "string"}},
                "required": ["fieldPath"],
                "x-kubernetes-preserve-unknown-fields": true,
            },
            "resourceFieldRef": {
                "description": "A limit or request of a container, for example resource: limits.memory.",
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
            },
            "secretKeyRef": secret,
        },
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// Returns an open object schema that lists only the first level of fields, each with its name, its type and the first
/// sentence of its description.
fn open<T: JsonSchema>(patch: bool) -> Map<String, Value> {
    let mut settings = SchemaSettings::openapi3();
    settings.inline_subschemas = true;
    let full = settings.into_generator().into_root_schema_for::<T>();
    let fields = full.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let fields: Map<_, _> = fields.into_iter().map(|(name, field)| (name, open_field(&field, patch))).collect();
    let mut schema = Map::new();
    schema.insert("type".into(), "object".into());
    schema.insert("properties".into(), fields.into());
    schema.insert("x-kubernetes-preserve-unknown-fields".into(), true.into());
    schema
}

fn open_field(full: &Value, patch: bool) -> Value {
    let mut field = Map::new();
    if let Some(text) = full["description"].as_str() {
        field.insert("description".into(), first_sentence(text).into());
    }
    if patch {
        field.insert("nullable".into(), true.into());
    }
    match full["type"].as_str() {
        Some("array") => {
            field.insert("type".into(), "array".into());
            field.insert("items".into(), json!({"x-kubernetes-preserve-unknown-fields": true}));
        }
        Some(scalar @ ("boolean" | "integer" | "string")) => {
            field.insert("type".into(), scalar.into());
        }
        _ => {
            field.insert("type".into(), "object".into());
            field.insert("x-kubernetes-preserve-unknown-fields".into(), true.into());
        }
    }
    field.into()
}

fn first_sentence(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.find(". ") {
        Some(end) => line[..=end].into(),
        None => line.into(),
    }
}
