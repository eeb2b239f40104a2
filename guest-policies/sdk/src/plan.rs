//! Builds plans.

use crate::json;
use crate::types::{EnvVar, Plan};
use alloc::vec::Vec;
use serde_json::Value;

/// Builds a plan from `manifests` and the complete mapping `env`. To add gates, notes and a finalizer, set fields of
/// the result.
pub fn of(manifests: &[Value], env: Vec<EnvVar>) -> Plan {
    Plan {
        manifests: manifests.iter().map(json::text).collect(),
        gates: Vec::new(),
        env,
        notes: Vec::new(),
        finalizer: None,
        kept: Vec::new(),
        gates_hold: false,
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
        assert!(plan.gates.is_empty() && plan.notes.is_empty() && plan.finalizer.is_none() && plan.extra == "{}");
    }
}
