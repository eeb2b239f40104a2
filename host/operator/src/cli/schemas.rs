//! The schemas of the output that commands print for programs. `docs/reference/output` publishes the schemas.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;

use super::{
    health::{EventAnswer, StatusAnswer, TreeAnswer, WhyAnswer},
    policy::RevisionAnswer,
};

/// Returns the schemas, each with the name of its command.
pub fn output_schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("events", of::<Vec<EventAnswer>>()),
        ("policy-list", of::<Vec<RevisionAnswer>>()),
        ("status", of::<StatusAnswer>()),
        ("tree", of::<TreeAnswer>()),
        ("why", of::<WhyAnswer>()),
    ]
}

fn of<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>().to_value()
}
