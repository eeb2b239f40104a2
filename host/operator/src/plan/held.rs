//! Decides for a comparison of plans whether plan gates hold back a plan, with the rules of a pass. A held plan changes
//! no children until its gates open.

use std::collections::BTreeMap;

use kaos_policy::{contract::Reference, render::Planned};
use serde_json::Value;

use crate::{
    plan_gates::{are_there, bind, decisive, is_first, was_applied},
    status::{
        conditions::{APPLIED, is_true},
        is_unwritten,
    },
};

/// Whether the operator applied an earlier plan of an object before plan gates held back the current plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    /// The operator has applied no plan of the object yet.
    BeforeFirstApply,
    /// The operator has applied an earlier plan, whose children stay as they are.
    KeepsChildren,
}

/// Returns how the gates hold back the plan `planned`; `None` if the operator would apply this plan. If `planned` is
/// the plan after a change, `old` contains the children of the plan before the change. The function `exists` returns
/// whether a child exists, or `None` if the caller does not know.
pub(super) fn hold(
    planned: &Planned,
    object: &Value,
    old: Option<&BTreeMap<Reference, Value>>,
    exists: &dyn Fn(&Reference) -> Option<bool>,
) -> Option<Hold> {
    if planned.gates.is_empty() {
        return None;
    }
    let are_known = decisive(planned).iter().all(|child| exists(child).is_some());
    let are_there = if are_known {
        are_there(planned, |child| exists(child) == Some(true))
    } else if is_unwritten(&object["status"]) {
        // The object comes from a file, and has no status. So it is unknown which children a cluster has.
        return None;
    } else {
        let was_applied = was_applied(object) || is_true(object, APPLIED);
        was_applied && are_there(planned, |child| old.is_none_or(|old| old.contains_key(child)))
    };
    let is_held = bind(planned, object, are_there);
    let hold = if is_first(object, are_there) { Hold::BeforeFirstApply } else { Hold::KeepsChildren };
    is_held.then_some(hold)
}

#[cfg(test)]
mod tests {
    use kaos_policy::contract::Blocker;
    use serde_json::json;

    use super::*;

    fn workload(name: &str) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name, "namespace": "n"},
            "spec": {"template": {"spec": {"containers": []}}}})
    }

    fn planned(gates_hold: bool) -> Planned {
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}});
        let on = Reference::of_object(&config);
        let gates = vec![Blocker { on, reason: "NotReady".to_owned(), message: "c is not ready".to_owned() }];
        Planned { manifests: vec![config, workload("w")], gates, gates_hold, ..Planned::default() }
    }

    fn children(names: &[&str]) -> BTreeMap<Reference, Value> {
        names.iter().map(|name| (Reference::of_object(&workload(name)), workload(name))).collect()
    }

    #[test]
    fn a_known_workload_decides_as_in_a_pass() {
        let (applied, never) = (json!({"status": {"appliedGeneration": 1}}), json!({"status": {"phase": "Waiting"}}));
        for (object, gates_hold, exists, expected) in [
            (&never, false, false, Some(Hold::BeforeFirstApply)),
            (&never, true, false, Some(Hold::BeforeFirstApply)),
            (&never, false, true, None),
            (&applied, false, true, None),
            (&applied, false, false, None),
            (&applied, true, true, Some(Hold::KeepsChildren)),
            // The workload was deleted, so the gates do not hold, and the operator creates the children again.
            (&applied, true, false, None),
        ] {
            let found = hold(&planned(gates_hold), object, None, &|_| Some(exists));
            assert_eq!(found, expected, "{object} {gates_hold} {exists}");
        }
        assert_eq!(hold(&Planned { gates: Vec::new(), ..planned(true) }, &applied, None, &|_| Some(true)), None);
    }

    #[test]
    fn without_a_look_at_the_cluster_the_status_decides() {
        let applied = json!({"status": {"appliedGeneration": 1}});
        let by_condition = json!({"status": {"conditions": [{"type": "Applied", "status": "True"}]}});
        let never = json!({"status": {"conditions": [{"type": "Applied", "status": "False", "reason": "Gated"}]}});
        let (same, other) = (children(&["w"]), children(&["v"]));
        for (object, gates_hold, old, expected) in [
            (&never, false, &same, Some(Hold::BeforeFirstApply)),
            (&applied, false, &same, None),
            (&applied, true, &same, Some(Hold::KeepsChildren)),
            (&by_condition, true, &same, Some(Hold::KeepsChildren)),
            // The plan has a workload that no earlier plan had, so the gates do not hold.
            (&applied, true, &other, None),
        ] {
            assert_eq!(hold(&planned(gates_hold), object, Some(old), &|_| None), expected, "{object} {gates_hold}");
        }
        assert_eq!(
            hold(&planned(true), &json!({"spec": {}}), Some(&same), &|_| None),
            None,
            "no operator saw this object"
        );
    }
}
