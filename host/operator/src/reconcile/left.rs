//! What an object left behind that had this one's name before, and that the collector has not come to yet: it stands in
//! the way of the child of the same name.
//!
//! A name belongs to one object at a time, so an owner of our name with another UID is gone, provided that ours is the one
//! that has the name now. That is asked of the API server, not of the watch, which may be the one that is late. What is
//! known to be nobody's is then deleted as the collector would: this UID, at the version that was looked at.

use kaos_policy::{contract::ResourceType, stamp::controller};
use kube::api::PropagationPolicy;
use serde_json::Value;

use super::{
    api::named,
    context::Context,
    decide::is_going,
    error::{CallError, Class},
    wanted::Wanted,
};

impl Context {
    /// Deletes what stands in a child's way and belonged to an earlier object of the owner's name. Says whether it is gone
    /// at once.
    pub(super) async fn clear_away(&self, wanted: &Wanted, live: &Value, uid: &str) -> Result<bool, CallError> {
        self.has_its_owner(wanted, uid).await?;
        let metadata = &live["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let served = self.served(&wanted.of)?;
        let calls = self.calls(&served, &wanted.namespace);
        let (which, background) = (wanted.reference(), PropagationPolicy::Background);
        let gone = self.delete(&calls, &which, text("uid"), Some(text("resourceVersion")), background).await?;
        tracing::info!(child = %named(&which), "deleted: its owner is gone");
        Ok(gone)
    }

    /// Asks whether the owner of a child that is to be made is still the one with this UID, and there to stay: one that is
    /// deleted so that its children stay leaves them without an owner, and a pass that began before must not become it again.
    pub(super) async fn has_its_owner(&self, wanted: &Wanted, uid: &str) -> Result<(), CallError> {
        let owner = controller(&wanted.body).unwrap_or(&Value::Null);
        let served = self.served(&ResourceType::of_object(owner))?;
        let name = owner["name"].as_str().unwrap_or_default();
        let now = self.calls(&served, &wanted.namespace).get(name).await?;
        if now.is_some_and(|now| now["metadata"]["uid"] == uid && !is_going(&now)) {
            return Ok(());
        }
        Err(CallError {
            what: format!("make {}", named(&wanted.reference())),
            class: Class::Transient(None),
            message: "its owner is another object by now, or is going".to_owned(),
        })
    }
}
