//! Putting a plan together.

use crate::json;
use crate::types::{EnvVar, Plan};
use alloc::vec::Vec;
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

#[cfg(test)]
mod tests {
    use super::of;
    use serde_json::json;

    #[test]
    fn manifests_are_canonical_and_keep_their_order() {
        let plan = of(&[json!({"kind": "B", "apiVersion": "v1"}), json!({"kind": "A"})], Vec::new());
        assert_eq!(plan.manifests, [r#"{"apiVersion":"v1","kind":"B"}"#, r#"{"kind":"A"}"#]);
        assert!(plan.gates.is_empty() && plan.notes.is_empty() && plan.extra == "{}");
    }
}
