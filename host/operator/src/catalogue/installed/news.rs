//! Events about revisions and about what they wait for, so that `kubectl describe` tells the story.

use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference};
use kaos_crds::RevisionState;
use kaos_policy::cut::{NOTE, cut};
use kube::{
    Client, Resource as _,
    runtime::events::{Event, EventType, Recorder, Reporter},
};

use super::records::{NOT_LOADED, Revision, revision_resource};

/// Tells what became of revisions, and what is wrong with ConfigMaps.
pub(super) struct News(Recorder);

impl News {
    /// `instance` names this process among its replicas.
    pub(super) fn new(client: Client, instance: String) -> Self {
        let reporter = Reporter { controller: "kaos.tools/operator".to_owned(), instance: Some(instance) };
        Self(Recorder::new(client, reporter))
    }

    /// Tells the state of a revision. An Event that cannot be told is lost: the status says the same.
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

    /// Tells what is wrong with a ConfigMap. An Event that cannot be told is lost: the log says the same.
    pub(super) async fn warn(&self, config_map: &ConfigMap, reason: &str, message: &str) {
        let event = Event {
            type_: EventType::Warning,
            reason: reason.to_owned(),
            note: Some(cut(message, NOTE).into_owned()),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        // Of another version it is another Event, and not the old one once more.
        let resource_version = config_map.metadata.resource_version.clone();
        self.publish(&event, &ObjectReference { resource_version, ..config_map.object_ref(&()) }).await;
    }

    async fn publish(&self, event: &Event, about: &ObjectReference) {
        if let Err(error) = self.0.publish(event, about).await {
            tracing::debug!(%error, "an Event could not be written");
        }
    }
}
