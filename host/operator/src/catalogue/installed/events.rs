//! Writes Events about revisions and ConfigMaps, so that `kubectl describe` shows the history.

use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference};
use kaos_crds::RevisionState;
use kaos_policy::cut::{NOTE, cut};
use kube::{
    Client, Resource as _,
    runtime::events::{Event, EventType, Recorder, Reporter},
};

use super::records::{NOT_LOADED, Revision, revision_resource};

/// Writes Events about revisions and ConfigMaps.
pub(super) struct Events(Recorder);

impl Events {
    /// Creates the writer. `instance` identifies this process among its replicas.
    pub(super) fn new(client: Client, instance: String) -> Self {
        let reporter = Reporter { controller: "kaos.tools/operator".to_owned(), instance: Some(instance) };
        Self(Recorder::new(client, reporter))
    }

    /// Writes an Event with the state of a revision. If the write fails, the Event is lost: the status says the same.
    pub(super) async fn tell(&self, revision: &Revision) {
        let status = revision.status.clone().unwrap_or_default();
        let bad = matches!(
            status.state,
            RevisionState::Refused | RevisionState::NotPermitted | RevisionState::Conflict | RevisionState::Quarantined
        ) || status.reason.as_deref() == Some(NOT_LOADED);
        let note = status.message.or_else(|| status.policy.map(|policy| format!("policy {policy}")));
        let event = Event {
            type_: if bad { EventType::Warning } else { EventType::Normal },
            reason: status.reason.unwrap_or_else(|| status.state.name().to_owned()),
            note: note.map(|note| cut(&note, NOTE).into_owned()),
            action: status.state.name().to_owned(),
            secondary: None,
        };
        self.publish(&event, &revision.object_ref(&revision_resource())).await;
    }

    /// Writes an Event about an error in a ConfigMap. If the write fails, the Event is lost: the log says the same.
    pub(super) async fn warn(&self, config_map: &ConfigMap, reason: &str, message: &str) {
        let event = Event {
            type_: EventType::Warning,
            reason: reason.to_owned(),
            note: Some(cut(message, NOTE).into_owned()),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        // The version makes this a new Event for each version of the ConfigMap, not a repetition of the old one.
        let resource_version = config_map.metadata.resource_version.clone();
        self.publish(&event, &ObjectReference { resource_version, ..config_map.object_ref(&()) }).await;
    }

    async fn publish(&self, event: &Event, about: &ObjectReference) {
        if let Err(error) = self.0.publish(event, about).await {
            tracing::debug!(%error, "an Event could not be written");
        }
    }
}
