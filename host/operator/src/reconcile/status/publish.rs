//! Publishes a status: sets its times, writes it, and reports its transitions as log lines and Events.

use std::time::Duration;

use serde_json::Value;

use crate::{
    metrics::Readiness,
    reconcile::{
        access::Access,
        applied::Applied,
        children::decide::is_going,
        error::{CallError, Class},
        memory::{Memories, Memory},
        pass_failed::PassFailed,
        status::{assess::Composed, declared_fields::DeclaredFields, times, write::write_status},
    },
    status::conditions::READY,
    timestamps::written,
    watch::{ObjectKey, Served},
};

/// The time limit for writing a status after a pass that did not finish. The cause, such as a slow API server, may also
/// delay this write.
const LAST_WRITE: Duration = Duration::from_secs(10);

/// Publishes a status. Returns whether the operator wrote the status.
pub(super) async fn publish(
    access: &Access,
    declared_fields: &DeclaredFields,
    (key, served): (&ObjectKey, &Served),
    object: &Value,
    status: Composed,
    memory: &mut Memory,
) -> Result<bool, CallError> {
    let before = &object["status"];
    let mut status = status.into_value();
    times::stamp(&mut status, before, &written(access.clock.now()));
    let news = times::transitions(&status, before);
    declared_fields.project(&access.client, &access.watch, &key.of, served, &mut status).await;
    let wrote = write_status(access, declared_fields, (&key.of, served), object, &status, memory).await?;
    memory.status.ready = Some(readiness(&status));
    if wrote {
        for transition in &news {
            let decision = memory.plan.decision;
            let shown = decision.map(tracing::field::display);
            let (reason, message) = (&transition.reason, &transition.message);
            tracing::info!(object = %key, reason, message, decision = shown, "changed");
            access.tell_decision(object, transition, decision).await;
        }
    }
    Ok(wrote)
}

/// Reports a pass that did not finish, in the status and as an Event. Reports nothing if the status already has the
/// same reason.
pub(crate) async fn publish_failure(
    access: &Access,
    declared_fields: &DeclaredFields,
    memories: &Memories,
    key: &ObjectKey,
    why: PassFailed,
) -> Result<(), CallError> {
    let Some(object) = access.watch.object(key).filter(|object| !is_going(object)) else { return Ok(()) };
    let served = access.served(&key.of)?;
    let mut memory = memories.take(key, object["metadata"]["uid"].as_str().unwrap_or_default());
    // Forget the last decision of the policies: the Event must not name it, because it is not the reason.
    memory.plan.decision = None;
    let Some(status) = Composed::unfinished(&Applied::unfinished(why), &object) else { return Ok(()) };
    let published = publish(access, declared_fields, (key, &served), &object, status, &mut memory);
    let published = tokio::time::timeout(LAST_WRITE, published).await.unwrap_or_else(|_| {
        let message = format!("the API server did not answer within {} s", LAST_WRITE.as_secs());
        Err(CallError { what: format!("apply status of {key}"), class: Class::Transient(None), message })
    });
    match published {
        Ok(_) => {
            memories.put(key, memory);
            Ok(())
        }
        Err(error) => {
            tracing::debug!(object = %key, %error, "could not report a pass that did not finish");
            Err(error)
        }
    }
}

/// Returns the readiness that a status shows.
pub(crate) fn readiness(status: &Value) -> Readiness {
    match times::find(status, READY).and_then(|ready| ready["status"].as_str()) {
        Some("True") => Readiness::True,
        Some("False") => Readiness::False,
        _ => Readiness::Unknown,
    }
}
