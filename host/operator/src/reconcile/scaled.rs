//! Replicas that somebody set before this operator came: by hand or by an autoscaler, on a workload of an earlier operator
//! that never looked at them again.
//!
//! The object says nothing of them, and the definition fills in 1: taken at its word, the takeover would scale down what
//! serves. So the object is noted to leave them to somebody else, which is told, shows in the object, and ends when the
//! note is taken away.

use std::{borrow::Cow, sync::Arc};

use kaos_policy::{
    contract::Reference,
    stamp::{EXTERNAL, REPLICAS, leaves_replicas, without_replicas},
};
use serde_json::Value;

use super::{
    api::{named, with_annotation},
    context::Context,
    error::{CallError, Class},
    subject::Subject,
    times::Transition,
};

/// A manifest that was planned before the object was noted to leave its replicas.
pub(super) fn as_scaled<'a>(manifest: &'a Value, object: &Value) -> Cow<'a, Value> {
    if !leaves_replicas(object) || manifest["spec"]["replicas"].is_null() {
        return Cow::Borrowed(manifest);
    }
    let mut manifest = manifest.clone();
    without_replicas(&mut manifest);
    Cow::Owned(manifest)
}

impl Context {
    /// Notes on the object that its replicas are somebody else's, who gave them to this workload. Answers with the object.
    pub(super) async fn leave_replicas(
        &self,
        subject: &Subject<'_>,
        workload: &Reference,
        live: &Value,
    ) -> Result<Arc<Value>, CallError> {
        let again = self.read_again(&subject.served, &subject.object).await?;
        let mut object = again.map(Arc::new).ok_or_else(|| CallError {
            what: format!("read {}", subject.key),
            class: Class::Transient(None),
            message: "it is another object by now, or none".to_owned(),
        })?;
        let operations = with_annotation(&object, REPLICAS, EXTERNAL);
        self.patch(&subject.served, &mut object, &operations).await?;
        let message = format!(
            "{} keeps its {} replicas, which were set on it before it was taken over: the annotation {REPLICAS} leaves \
             them to whoever set them; to have them kept as the object says, set spec.replicas and remove it",
            named(workload),
            live["spec"]["replicas"]
        );
        tracing::info!(object = %subject.key, message, "the replicas are left");
        self.tell(&object, &Transition { reason: "ReplicasLeft".to_owned(), message, warning: false }).await;
        Ok(object)
    }
}
