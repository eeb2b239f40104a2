//! Decides what to do with one child, from the wanted manifest and the live object. This code has no I/O.

use kaos_policy::{
    contract::ResourceType,
    stamp::{APPLIED_DIGEST, MANAGED_BY, MANAGER, controller, owners},
};
use serde_json::Value;

use crate::reconcile::{children::drift, children::final_manifest::Wanted, children::leftover_fields};

/// The value of the label `app.kubernetes.io/managed-by` on children that the earlier operator created for many objects
/// together. No object owns such a child.
const SHARED_BY_EARLIER: &str = "kaos-operator-authz";

/// A decision about a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The child matches the plan.
    Same,
    /// The object owns the child, and the plan's manifest differs from the manifest that the operator applied last.
    Apply,
    /// The operator applied the same manifest, but a field differs now. Contains the path of the first such field.
    Drifted(String),
    /// Another field manager added fields to the child's spec.
    Extended,
    /// The operator applied the same manifest, but a field that the server derived from an earlier plan remains.
    /// Contains the path of this field.
    LeftOver(String),
    /// The object owns the child, or the child has no owner, but this operator never applied the child.
    TakeOver,
    /// The child belongs to another owner. Contains the name of this owner.
    Foreign(String),
    /// The only owner of the child has the object's name and another UID, so this owner is probably deleted. Contains
    /// the name of this owner.
    Left(String),
    /// The child is being deleted, so the operator cannot change it.
    Going,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The object owns the child.
    Ours,
    /// The child has no owner. Either this operator applied the child for an object that is deleted now, or the earlier
    /// operator created the child for many objects together.
    Orphan,
    /// Another owner owns the child. Contains the name of this owner.
    Other(String),
}

/// Decides what to do with an existing child. `shared` is true if another field manager owns a part of the child's
/// spec.
pub(crate) fn decide(wanted: &Wanted, live: &Value, uid: &str, shared: bool) -> Decision {
    match owner(live, uid) {
        Owner::Other(owner) if !is_left(wanted, live) => return Decision::Foreign(owner),
        _ if is_going(live) => return Decision::Going,
        Owner::Other(owner) => return Decision::Left(owner),
        Owner::Ours | Owner::Orphan => {}
    }
    match applied_digest(live) {
        None => Decision::TakeOver,
        Some(digest) if digest != wanted.digest() => Decision::Apply,
        Some(_) => match drift::missing(&wanted.body, live) {
            None if shared && wanted.has_whole_spec() => Decision::Extended,
            None => match leftover_fields::named(&leftover_fields::leftovers(&wanted.body, live)) {
                Some(path) => Decision::LeftOver(path),
                None => Decision::Same,
            },
            Some(path) => Decision::Drifted(path),
        },
    }
}

/// Returns the owner of a live child, compared with the pass's object, which has this UID.
pub(crate) fn owner(live: &Value, uid: &str) -> Owner {
    match controller(live) {
        Some(owner) if owner["uid"] == uid => Owner::Ours,
        Some(owner) => {
            let text = |field: &str| owner[field].as_str().unwrap_or("?");
            Owner::Other(format!("{} {}", text("kind"), text("name")))
        }
        None if owners(live).is_empty() && is_left_behind(live) => Owner::Orphan,
        None => Owner::Other("nobody".to_owned()),
    }
}

/// Returns whether a live object without an owner comes from this operator or from the earlier operator.
fn is_left_behind(live: &Value) -> bool {
    let manager = &live["metadata"]["labels"][MANAGED_BY];
    *manager == SHARED_BY_EARLIER || (*manager == MANAGER && applied_digest(live).is_some())
}

/// Returns whether a live object has a single owner with the group, kind and name of the wanted owner.
fn is_left(wanted: &Wanted, live: &Value) -> bool {
    let ([theirs], Some(ours)) = (owners(live), controller(&wanted.body)) else { return false };
    let (their, our) = (ResourceType::of_object(theirs), ResourceType::of_object(ours));
    theirs["kind"] == ours["kind"] && theirs["name"] == ours["name"] && their.group() == our.group()
}

/// Returns whether an object is being deleted.
pub(crate) fn is_going(live: &Value) -> bool {
    !live["metadata"]["deletionTimestamp"].is_null()
}

/// Returns the digest of the manifest that this operator applied last, or `None` if the child does not have the
/// annotation.
pub(crate) fn applied_digest(live: &Value) -> Option<&str> {
    live["metadata"]["annotations"][APPLIED_DIGEST].as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const UID: &str = "u1";

    fn wanted() -> Wanted {
        let manifest = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"namespace": "t", "name": "a", "labels": {MANAGED_BY: MANAGER}, "annotations": {},
                "ownerReferences": [{"uid": UID, "kind": "Widget", "name": "a", "controller": true}]},
            "spec": {"ports": [{"port": 80}]},
        });
        Wanted::new(&manifest, &json!({}), None, &|_| false, &[])
    }

    fn live(change: impl Fn(&mut Value)) -> Value {
        let mut live = wanted().body;
        live["spec"]["clusterIP"] = json!("10.0.0.1");
        change(&mut live);
        live
    }

    fn decided(change: impl Fn(&mut Value)) -> Decision {
        decide(&wanted(), &live(change), UID, true)
    }

    #[test]
    fn a_child_as_applied_stays() {
        assert_eq!(decided(|_| ()), Decision::Same);
    }

    #[test]
    fn another_digest_is_applied_and_a_changed_field_is_drift() {
        assert_eq!(decided(|live| live["metadata"]["annotations"][APPLIED_DIGEST] = json!("x")), Decision::Apply);
        assert_eq!(
            decided(|live| live["spec"]["ports"] = json!([{"port": 81}])),
            Decision::Drifted("spec.ports.0".to_owned())
        );
    }

    #[test]
    fn an_owned_child_without_an_apply_is_taken_over() {
        assert_eq!(decided(|live| live["metadata"]["annotations"] = json!({})), Decision::TakeOver);
    }

    #[test]
    fn a_child_of_another_owner_is_never_touched() {
        let other = json!([{"uid": "u2", "kind": "Widget", "name": "b", "controller": true}]);
        assert_eq!(
            decided(|live| live["metadata"]["ownerReferences"] = other.clone()),
            Decision::Foreign("Widget b".to_owned())
        );
        let unlabelled = decided(|live| {
            live["metadata"]["ownerReferences"] = json!([]);
            live["metadata"]["labels"] = json!({});
        });
        assert_eq!(unlabelled, Decision::Foreign("nobody".to_owned()));
        let never_applied = decided(|live| {
            live["metadata"]["ownerReferences"] = json!([]);
            live["metadata"]["annotations"] = json!({});
        });
        assert_eq!(never_applied, Decision::Foreign("nobody".to_owned()));
    }

    #[test]
    fn an_orphan_gets_its_owner_back() {
        let orphan = decided(|live| drop(live["metadata"].as_object_mut().unwrap().remove("ownerReferences")));
        assert_eq!(orphan, Decision::Drifted("metadata.ownerReferences".to_owned()));
    }

    #[test]
    fn a_child_that_the_earlier_operator_made_for_many_objects_is_taken_over() {
        let shared = |live: &mut Value, owners: Value| {
            live["metadata"]["ownerReferences"] = owners;
            live["metadata"]["labels"][MANAGED_BY] = json!(SHARED_BY_EARLIER);
            live["metadata"]["annotations"] = json!({});
        };
        assert_eq!(decided(|live| shared(live, json!([]))), Decision::TakeOver);
        let other = json!([{"uid": "u2", "kind": "Widget", "name": "b", "controller": true}]);
        assert_eq!(decided(|live| shared(live, other.clone())), Decision::Foreign("Widget b".to_owned()));
    }

    #[test]
    fn a_child_of_a_deleted_owner_of_the_same_name_is_stale() {
        let left = |owners: Value| decided(|live| live["metadata"]["ownerReferences"] = owners.clone());
        let before = json!({"uid": "u0", "kind": "Widget", "name": "a", "controller": true});
        assert_eq!(left(json!([before])), Decision::Left("Widget a".to_owned()));
        let foreign = Decision::Foreign("Widget a".to_owned());
        assert_eq!(
            left(json!([before, {"uid": "u2", "kind": "Widget", "name": "b"}])),
            foreign,
            "another owner needs the child too"
        );
        let mut elsewhere = before.clone();
        elsewhere["apiVersion"] = json!("other.io/v1");
        assert_eq!(left(json!([elsewhere])), foreign, "the owner has another group");
        let going = decided(|live| {
            live["metadata"]["ownerReferences"] = json!([before]);
            live["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        });
        assert_eq!(going, Decision::Going);
    }

    #[test]
    fn a_child_that_is_being_deleted_is_waited_for() {
        assert_eq!(
            decided(|live| live["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z")),
            Decision::Going
        );
    }
}
