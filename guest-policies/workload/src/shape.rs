//! What settings that end in manifests may look like, so that a bad one is told by the name of the setting and
//! never by an API server. One home: every policy has the same shapes.
//!
//! Of use in `schemars(schema_with = "…")`; part of tests and of the generator only.

use crate::settings::Probe;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// Labels of DNS with dots between them.
const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
/// What stands in keys of labels behind the slash.
const WORD: &str = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?";
const QUANTITY: &str = "^[+-]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$";

fn text(pattern: &str, longest: u32) -> Schema {
    json_schema!({"type": "string", "pattern": pattern, "maxLength": longest})
}

/// The name of a port: one letter at least.
pub fn port_name(_: &mut SchemaGenerator) -> Schema {
    text("^([0-9]+-)*[0-9]*[a-z][a-z0-9]*(-[a-z0-9]+)*$", 15)
}

/// The name of a volume or a container.
pub fn label_name(_: &mut SchemaGenerator) -> Schema {
    text("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", 63)
}

/// The name of an object.
pub fn object_name(_: &mut SchemaGenerator) -> Schema {
    text(&format!("^{SUBDOMAIN}$"), 253)
}

/// The name of an object, or nothing.
pub fn any_object_name(_: &mut SchemaGenerator) -> Schema {
    text(&format!("^({SUBDOMAIN})?$"), 253)
}

/// The name of a namespace, or nothing.
pub fn any_namespace(_: &mut SchemaGenerator) -> Schema {
    text("^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$", 63)
}

/// A finalizer, or nothing.
pub fn any_finalizer(_: &mut SchemaGenerator) -> Schema {
    text(&format!("^({SUBDOMAIN}/{WORD})?$"), 317)
}

/// A directory that something is mounted in.
pub fn directory(_: &mut SchemaGenerator) -> Schema {
    text("^/[^:]*$", 4096)
}

/// A key of a ConfigMap, which is also the name of a file.
pub fn file_name(_: &mut SchemaGenerator) -> Schema {
    text("^([-_a-zA-Z0-9]|\\.[-_a-zA-Z0-9])[-._a-zA-Z0-9]*$", 253)
}

/// The name of a variable, or nothing.
pub fn any_variable(_: &mut SchemaGenerator) -> Schema {
    text("^([-._a-zA-Z][-._a-zA-Z0-9]*)?$", 253)
}

fn keyed(value: &Value) -> Schema {
    json_schema!({
        "type": "object",
        "propertyNames": {
            "pattern": format!("^({SUBDOMAIN}/)?{WORD}$"),
            "maxLength": 317,
            // The operator's own: a policy that set one would speak in its name.
            "not": {"pattern": "^(.*\\.)?kaos\\.tools/"},
        },
        "additionalProperties": value,
    })
}

/// Labels.
pub fn labels(_: &mut SchemaGenerator) -> Schema {
    keyed(&json!({"type": "string", "pattern": format!("^({WORD})?$"), "maxLength": 63}))
}

/// Annotations.
pub fn annotations(_: &mut SchemaGenerator) -> Schema {
    keyed(&json!({"type": "string"}))
}

/// Resources of a container.
pub fn resources(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "patternProperties": {
            "^(limits|requests)$": {
                "type": ["object", "null"],
                "additionalProperties": {"type": ["string", "number"], "pattern": QUANTITY},
            },
        },
    })
}

/// A probe for liveness, of which one success is enough.
pub fn liveness(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = Probe::json_schema(generator);
    if let Some(threshold) = schema.pointer_mut("/properties/successThreshold") {
        threshold["maximum"] = json!(1);
    }
    schema
}
