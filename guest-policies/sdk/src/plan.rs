//! Builds plans.

use crate::json;
use crate::types::{EnvVar, Plan};
use alloc::{borrow::ToOwned, string::String, vec::Vec};
use serde_json::{Map, Value};

/// Builds a plan of `manifests` and the final mapping `env`. Add gates and notes to the fields of the result.
pub fn of(manifests: &[Value], env: Vec<EnvVar>) -> Plan {
    Plan {
        manifests: manifests.iter().map(json::text).collect(),
        gates: Vec::new(),
        env,
        notes: Vec::new(),
        extra: json::empty(),
    }
}

/// Returns the `extra` of a plan: the finalizer that it asks for, unless empty, and the needs that the plan is complete
/// without.
pub fn extra(finalizer: &str, optional_needs: &[&str]) -> String {
    extra_keeping(finalizer, optional_needs, &[])
}

/// Like [`extra`], with the names of `PersistentVolumeClaim`s to keep when the object is deleted.
pub fn extra_keeping(finalizer: &str, optional_needs: &[&str], kept: &[&str]) -> String {
    let mut members = Map::new();
    if !finalizer.is_empty() {
        members.insert("finalizer".to_owned(), finalizer.into());
    }
    for (name, list) in [("optionalNeeds", optional_needs), ("kept", kept)] {
        if !list.is_empty() {
            members.insert(name.to_owned(), list.iter().copied().collect());
        }
    }
    json::text(&Value::Object(members))
}

/// Makes the gates of a plan also hold back changes to running workloads. Use it if the plan lacks what a missing object
/// provides: the workloads would restart without it, and again when the object returns.
pub fn hold(plan: &mut Plan) {
    let Some(Value::Object(mut members)) = json::parse(&plan.extra) else { return };
    members.insert("gatesHold".to_owned(), true.into());
    plan.extra = json::text(&Value::Object(members));
}

#[cfg(test)]
mod tests {
    use super::{extra, extra_keeping, of};
    use serde_json::json;

    #[test]
    fn extra_has_only_the_members_that_say_something() {
        assert_eq!(extra("", &[]), "{}");
        assert_eq!(extra("a.b/c", &["registry"]), r#"{"finalizer":"a.b/c","optionalNeeds":["registry"]}"#);
        assert_eq!(extra_keeping("", &[], &["data"]), r#"{"kept":["data"]}"#);
    }

    #[test]
    fn manifests_are_canonical_and_keep_their_order() {
        let plan = of(&[json!({"kind": "B", "apiVersion": "v1"}), json!({"kind": "A"})], Vec::new());
        assert_eq!(plan.manifests, [r#"{"apiVersion":"v1","kind":"B"}"#, r#"{"kind":"A"}"#]);
        assert!(plan.gates.is_empty() && plan.notes.is_empty() && plan.extra == "{}");
    }

    #[test]
    fn gates_hold_in_addition_to_the_other_members() {
        let mut plan = of(&[], Vec::new());
        plan.extra = extra("a.b/c", &[]);
        hold(&mut plan);
        assert_eq!(plan.extra, r#"{"finalizer":"a.b/c","gatesHold":true}"#);
    }
}
