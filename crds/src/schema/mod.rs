//! Parts of the schemas that the types do not derive.

pub(crate) mod kubernetes;
pub(crate) mod rules;

use schemars::{Schema, SchemaGenerator, json_schema};

/// A fraction between 0 and 1.
pub(crate) fn share(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "number", "minimum": 0, "maximum": 1})
}
