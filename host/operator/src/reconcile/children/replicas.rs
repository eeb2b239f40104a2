//! Keeps the number of replicas that a user or an autoscaler set on a workload of an earlier operator. The earlier
//! operator never reset this number.
//!
//! The object does not contain this number, and the default of its kind is 1. So a plain takeover would scale down a
//! serving workload. To keep the replicas, the operator adds an annotation to the object. While the object has the
//! annotation, the operator does not write the replicas. An Event reports the annotation.

use std::{borrow::Cow, sync::Arc};

use kaos_policy::{
    contract::Reference,
    stamp::{EXTERNAL, REPLICAS, leaves_replicas, without_replicas},
};
use serde_json::Value;

use crate::reconcile::{
    access::Access,
    api::{named, with_annotation},
    error::{CallError, Class},
    event_text::EventText,
    subject::Subject,
};

/// Removes the field `replicas` from the manifest if the object has the annotation: the manifest may come from an
/// earlier plan.
pub(crate) fn as_scaled<'a>(manifest: &'a Value, object: &Value) -> Cow<'a, Value> {
    if !leaves_replicas(object) || manifest["spec"]["replicas"].is_null() {
        return Cow::Borrowed(manifest);
    }
    let mut manifest = manifest.clone();
    without_replicas(&mut manifest);
    Cow::Owned(manifest)
}

/// Annotates the object, so that this workload keeps the replicas that another client set. Returns the annotated
/// object.
pub(crate) async fn leave_replicas(
    access: &Access,
    subject: &Subject<'_>,
    workload: &Reference,
    live: &Value,
) -> Result<Arc<Value>, CallError> {
    let again = access.read_again(&subject.served, &subject.object).await?;
    let mut object = again.map(Arc::new).ok_or_else(|| CallError {
        what: format!("read {}", subject.key),
        class: Class::Transient(None),
        message: "the object was replaced or deleted".to_owned(),
    })?;
    let operations = with_annotation(&object, REPLICAS, EXTERNAL);
    access.patch(&subject.served, &mut object, &operations).await?;
    let message = format!(
        "{} keeps its {} replicas, which another client set before the takeover. With the annotation {REPLICAS}, the \
         operator does not change this number. To set the number in the object, set spec.replicas and remove the \
         annotation",
        named(workload),
        live["spec"]["replicas"]
    );
    tracing::info!(object = %subject.key, message, "left the replicas as they are");
    access.tell(&object, &EventText { reason: "ReplicasLeft".to_owned(), message, warning: false }).await;
    Ok(object)
}
