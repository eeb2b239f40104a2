//! Schemas that are written by hand instead of derived from the types.

pub(crate) mod kubernetes;
pub(crate) mod rules;

use schemars::{Schema, SchemaGenerator, json_schema};

/// Returns the schema of a fraction between 0 and 1.
pub(crate) fn share(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "number", "minimum": 0, "maximum": 1})
}
