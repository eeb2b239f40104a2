//! Deletes a child that belonged to an earlier object of the same name, if the garbage collector has not deleted it
//! yet. The old child blocks the new child of the same name.
//!
//! At any time, only one object has a given name. So if the pass's object exists now, an owner with the same name and
//! another UID no longer exists. The operator reads the object from the API server, because the watch may be late. If
//! the object exists, the operator deletes the child as the garbage collector would, by the child's UID and version.

use kaos_policy::{contract::ResourceType, stamp::controller};
use kube::api::PropagationPolicy;
use serde_json::Value;

use crate::reconcile::{
    access::Access,
    api::named,
    children::decide::is_going,
    children::final_manifest::Wanted,
    error::{CallError, Class},
};

/// Deletes a child whose owner is an earlier object of the same name. Returns whether the child is gone immediately.
pub(crate) async fn clear_away(access: &Access, wanted: &Wanted, live: &Value, uid: &str) -> Result<bool, CallError> {
    has_its_owner(access, wanted, uid).await?;
    let metadata = &live["metadata"];
    let text = |field: &str| metadata[field].as_str().unwrap_or_default();
    let (which, background) = (wanted.reference(), PropagationPolicy::Background);
    let gone = access.delete(&which, text("uid"), Some(text("resourceVersion")), background).await?;
    tracing::info!(child = %named(&which), "deleted a child of a deleted owner");
    Ok(gone)
}

/// Checks that the owner of a planned child still has this UID and is not being deleted. If a user deletes the owner
/// and keeps its children, Kubernetes removes their owner references. A pass that began earlier must not restore these
/// references.
pub(crate) async fn has_its_owner(access: &Access, wanted: &Wanted, uid: &str) -> Result<(), CallError> {
    let owner = controller(&wanted.body).unwrap_or(&Value::Null);
    let served = access.served(&ResourceType::of_object(owner))?;
    let name = owner["name"].as_str().unwrap_or_default();
    let now = access.calls(&served, &wanted.namespace).get(name).await?;
    if now.is_some_and(|now| now["metadata"]["uid"] == uid && !is_going(&now)) {
        return Ok(());
    }
    Err(CallError {
        what: format!("create {}", named(&wanted.reference())),
        class: Class::Transient(None),
        message: "its owner was replaced or is being deleted".to_owned(),
    })
}
