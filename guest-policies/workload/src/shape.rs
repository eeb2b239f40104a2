//! Schemas for settings that become part of manifests. With these schemas, the host reports a wrong value with the name
//! of its setting, before an API server can refuse the value. All policies use the same schemas.
//!
//! Settings types name these functions in `schemars(schema_with = "…")`. Only tests and the generator use this module.

use crate::settings::Probe;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// A pattern for DNS labels that dots separate.
const SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
/// A pattern for the part of a label's key after the slash.
const WORD: &str = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?";
const QUANTITY: &str = "^[+-]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$";

fn text(pattern: &str, longest: u32) -> Schema {
    json_schema!({"type": "string", "pattern": pattern, "maxLength": longest})
}

/// Returns the schema for the name of a port. The name must contain a letter.
pub fn port_name(_: &mut SchemaGenerator) -> Schema {
    text("^([0-9]+-)*[0-9]*[a-z][a-z0-9]*(-[a-z0-9]+)*$", 15)
}

/// Returns the schema for the name of a volume or a container.
pub fn label_name(_: &mut SchemaGenerator) -> Schema {
    text("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", 63)
}

/// Returns the schema for the name of an object.
pub fn object_name(_: &mut SchemaGenerator) -> Schema {
    text(&format!("^{SUBDOMAIN}$"), 253)
}

/// Returns the schema for a text that is empty or the name of an object.
pub fn any_object_name(_: &mut SchemaGenerator) -> Schema {
    text(&format!("^({SUBDOMAIN})?$"), 253)
}

/// Returns the schema for a text that is empty or the name of a namespace.
pub fn any_namespace(_: &mut SchemaGenerator) -> Schema {
    text("^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$", 63)
}

/// Returns the schema for a text that is empty or the address of a Service with its port.
pub fn any_service(_: &mut SchemaGenerator) -> Schema {
    text("^(([a-z]+://)?[-a-z0-9]+\\.[-a-z0-9]+(\\.svc(\\.[-.a-z0-9]+)?)?:[0-9]{1,5}/?)?$", 300)
}

/// Returns the schema for a text that is empty or a host with or without a port.
pub fn any_host(_: &mut SchemaGenerator) -> Schema {
    text(&format!("^({SUBDOMAIN}|\\[[0-9a-fA-F:.]+\\])?(:[0-9]{{1,5}})?$"), 300)
}

/// Returns the schema for a text that is empty or a JSON Web Key Set.
pub fn any_jwks(_: &mut SchemaGenerator) -> Schema {
    text("^(\\s*\\{[\\s\\S]*\"keys\"[\\s\\S]*\\}\\s*)?$", 65_536)
}

/// Returns the schema for a text that is empty or a finalizer.
pub fn any_finalizer(_: &mut SchemaGenerator) -> Schema {
    text(&format!("^({SUBDOMAIN}/{WORD})?$"), 317)
}

/// Returns the schema for the directory in which a container mounts a volume.
pub fn directory(_: &mut SchemaGenerator) -> Schema {
    text("^/[^:]*$", 4096)
}

/// Returns the schema for a key of a ConfigMap that becomes the name of a file.
pub fn file_name(_: &mut SchemaGenerator) -> Schema {
    text("^([-_a-zA-Z0-9]|\\.[-_a-zA-Z0-9])[-._a-zA-Z0-9]*$", 253)
}

/// Returns the schema for a text that is empty or the name of a variable.
pub fn any_variable(_: &mut SchemaGenerator) -> Schema {
    text("^([-._a-zA-Z][-._a-zA-Z0-9]*)?$", 253)
}

fn keyed(value: &Value) -> Schema {
    json_schema!({
        "type": "object",
        "propertyNames": {
            "pattern": format!("^({SUBDOMAIN}/)?{WORD}$"),
            "maxLength": 317,
            // Refuse keys under `kaos.tools/`, which the operator itself uses: a policy with such a key would
            // impersonate the operator.
            "not": {"pattern": "^(.*\\.)?kaos\\.tools/"},
        },
        "additionalProperties": value,
    })
}

/// Returns the schema for the variables of known images. Each key is an image. Each value lists variables, and for each
/// variable the versions of the image that read it.
pub fn image_variables(_: &mut SchemaGenerator) -> Schema {
    let entry = "[-._a-zA-Z0-9]+\\*? (never|<?[0-9]+\\.[0-9]+(\\.[0-9]+)?)";
    json_schema!({
        "type": "object",
        "additionalProperties": {"type": "string", "pattern": format!("^({entry}(, {entry})*)?$"), "maxLength": 10_000},
    })
}

/// Returns the schema for labels.
pub fn labels(_: &mut SchemaGenerator) -> Schema {
    keyed(&json!({"type": "string", "pattern": format!("^({WORD})?$"), "maxLength": 63}))
}

/// Returns the schema for annotations.
pub fn annotations(_: &mut SchemaGenerator) -> Schema {
    keyed(&json!({"type": "string"}))
}

/// Returns the schema for the resources of a container.
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

/// Returns the schema for a liveness probe. Kubernetes requires a success threshold of 1 for a liveness probe.
pub fn liveness(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = Probe::json_schema(generator);
    if let Some(threshold) = schema.pointer_mut("/properties/successThreshold") {
        threshold["maximum"] = json!(1);
    }
    schema
}
