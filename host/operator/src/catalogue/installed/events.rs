//! Writes Events about revisions and ConfigMaps, so that `kubectl describe` shows the history. If an Event repeats, the
//! counter of the first Event increases.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference};
use kaos_crds::RevisionState;
use kaos_policy::cut::{NOTE, cut};
use kube::Resource as _;

use super::{
    observed::ROLLOUT_PAUSED,
    records::{NOT_LOADED, Revision, revision_resource},
};
use crate::{
    clock::Clock,
    events::{EventWriter, NewEvent, Repeat},
};

/// Writes Events about revisions and ConfigMaps.
pub(super) struct Events {
    writer: Arc<EventWriter>,
    clock: Clock,
}

impl Events {
    pub(super) fn new(writer: Arc<EventWriter>, clock: Clock) -> Self {
        Self { writer, clock }
    }

    /// Writes an Event with the state of a revision. If the write fails, the Event is lost, but the status still shows
    /// the state.
    pub(super) async fn tell(&self, revision: &Revision) {
        let status = revision.status.clone().unwrap_or_default();
        let warning = matches!(
            status.state,
            RevisionState::Held
                | RevisionState::Refused
                | RevisionState::NotPermitted
                | RevisionState::Conflict
                | RevisionState::Quarantined
        ) || status.reason.as_deref() == Some(NOT_LOADED)
            || status.reason.as_deref() == Some(ROLLOUT_PAUSED);
        let note = status.message.or_else(|| status.policy.map(|policy| format!("policy {policy}")));
        let note = note.unwrap_or_default();
        let action = status.state.name();
        self.write(NewEvent {
            regarding: revision.object_ref(&revision_resource()),
            warning,
            reason: status.reason.as_deref().unwrap_or(action),
            action,
            note: &cut(&note, NOTE),
            annotation: None,
        })
        .await;
    }

    /// Writes an Event about an error in a ConfigMap. If the write fails, the Event is lost, but the log contains the
    /// same message.
    pub(super) async fn warn(&self, config_map: &ConfigMap, reason: &str, message: &str) {
        // Include the version of the ConfigMap, so that each version gets a new Event. Without the version, the writer
        // would only count the Event as a repetition of the old Event.
        let resource_version = config_map.metadata.resource_version.clone();
        let regarding = ObjectReference { resource_version, ..config_map.object_ref(&()) };
        let note = cut(message, NOTE);
        self.write(NewEvent { regarding, warning: true, reason, action: "Reconcile", note: &note, annotation: None })
            .await;
    }

    async fn write(&self, event: NewEvent<'_>) {
        self.writer.write(self.clock.now(), &event, Repeat::Count).await;
    }
}
