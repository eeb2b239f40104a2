//! Events about revisions, so that `kubectl describe` tells the story.

use kaos_crds::RevisionState;
use kaos_policy::cut::{NOTE, cut};
use kube::{
    Client, Resource as _,
    runtime::events::{Event, EventType, Recorder, Reporter},
};

use super::records::{Revision, resource};

/// Tells what became of revisions.
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
        );
        let note = status.message.or_else(|| status.policy.map(|policy| format!("policy {policy}")));
        let event = Event {
            type_: if bad { EventType::Warning } else { EventType::Normal },
            reason: status.reason.unwrap_or_else(|| status.state.name().to_owned()),
            note: note.map(|note| cut(&note, NOTE).into_owned()),
            action: status.state.name().to_owned(),
            secondary: None,
        };
        if let Err(error) = self.0.publish(&event, &revision.object_ref(&resource())).await {
            tracing::debug!(%error, "an Event could not be written");
        }
    }
}
