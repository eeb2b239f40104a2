//! Putting a plan together.

use crate::json;
use crate::types::{EnvVar, Plan};
use serde_json::Value;

/// A plan of `manifests` with the final `env` mapping; gates and notes are added to its fields.
pub fn of(manifests: &[Value], env: Vec<EnvVar>) -> Plan {
    Plan {
        manifests: manifests.iter().map(json::text).collect(),
        gates: Vec::new(),
        env,
        notes: Vec::new(),
        extra: json::empty(),
    }
}
