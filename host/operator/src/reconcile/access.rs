//! Access to the API server and to the watch, for the steps of a pass that write. Each write immediately passes the
//! server's answer to the watch, so that no later pass acts on an older state.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use kaos_policy::{
    contract::{Reference, ResourceType},
    cut::{NOTE, cut},
    render::DecisionId,
};
use kube::{Client, api::PropagationPolicy};
use serde_json::Value;

use super::{
    api::Calls,
    error::{CallError, Class},
    event_text::EventText,
};
use crate::{
    clock::Clock,
    events::{EventWriter, NewEvent, Repeat},
    watch::{Served, Watch},
};

/// The annotation of an Event with the id of the decision that the Event is about.
const DECISION: &str = "kaos.tools/decision";

/// Access to the cluster.
pub(crate) struct Access {
    pub(crate) client: Client,
    pub(crate) watch: Watch,
    pub(crate) events: Arc<EventWriter>,
    pub(crate) clock: Clock,
}

impl Access {
    /// Returns how the API server currently serves a type.
    pub(crate) fn served(&self, of: &ResourceType) -> Result<Served, CallError> {
        self.watch.served(of).ok_or_else(|| CallError {
            what: format!("find {of}"),
            class: Class::Gone,
            message: "the cluster does not serve this type now".to_owned(),
        })
    }

    pub(crate) fn calls(&self, served: &Served, namespace: &str) -> Calls<'_> {
        Calls::namespaced(&self.client, &served.resource, namespace)
    }

    /// Reads a child from the API server. Returns `None` if the child does not exist.
    pub(crate) async fn read(&self, child: &Reference) -> Result<Option<Value>, CallError> {
        let served = self.served(&child.of())?;
        self.calls(&served, child.namespace.as_deref().unwrap_or_default()).get(&child.name).await
    }

    /// Reads the object of the pass from the API server. Returns `None` if the object is gone, or if another object has
    /// the same name now.
    pub(crate) async fn read_again(&self, served: &Served, object: &Value) -> Result<Option<Value>, CallError> {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
        let live = self.calls(served, text("namespace")).get(text("name")).await?;
        Ok(live.filter(|live| live["metadata"]["uid"] == object["metadata"]["uid"]))
    }

    /// Patches the object of a pass.
    pub(crate) async fn patch(
        &self,
        served: &Served,
        object: &mut Arc<Value>,
        operations: &Value,
    ) -> Result<(), CallError> {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (text("namespace"), text("name"));
        let answer = self.calls(served, &namespace).patch(&name, operations).await.map_err(may_pass)?;
        self.watch.wrote(&answer);
        *object = Arc::new(answer);
        Ok(())
    }

    /// Deletes the object with this UID. If a version is given, deletes the object only at this version. Returns `true`
    /// if the object is gone immediately. Otherwise, the object waits for finalizers, which can include the finalizers
    /// of the garbage collector.
    pub(crate) async fn delete(
        &self,
        which: &Reference,
        uid: &str,
        version: Option<&str>,
        propagation: PropagationPolicy,
    ) -> Result<bool, CallError> {
        let served = self.served(&which.of())?;
        let namespace = which.namespace.as_deref().unwrap_or_default();
        let going = self.calls(&served, namespace).delete(&which.name, uid, version, propagation).await?;
        if let Some(going) = &going {
            self.watch.wrote(going);
        } else {
            self.watch.deleted(&which.of(), namespace, &which.name, uid);
        }
        Ok(going.is_none())
    }

    /// Writes an Event about a change of an object.
    pub(crate) async fn tell(&self, object: &Value, transition: &EventText) {
        self.tell_decision(object, transition, None).await;
    }

    /// Writes an Event about a change of an object. The Event names the decision of the policies in an annotation.
    pub(crate) async fn tell_decision(&self, object: &Value, transition: &EventText, decision: Option<DecisionId>) {
        let EventText { reason, message, warning } = transition;
        let (regarding, note) = (reference(object), cut(message, NOTE));
        let decision = decision.map(|decision| decision.to_string());
        let annotation = decision.as_deref().map(|decision| (DECISION, decision));
        let event = NewEvent { regarding, warning: *warning, reason, action: "Reconcile", note: &note, annotation };
        self.events.write(self.clock.now(), &event, Repeat::Skip).await;
    }
}

/// Returns a reference to this version of an object.
fn reference(object: &Value) -> ObjectReference {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let metadata = &object["metadata"];
    ObjectReference {
        api_version: text(&object["apiVersion"]),
        kind: text(&object["kind"]),
        namespace: text(&metadata["namespace"]),
        name: text(&metadata["name"]),
        uid: text(&metadata["uid"]),
        resource_version: text(&metadata["resourceVersion"]),
        field_path: None,
    }
}

/// Makes a final error of a patch transient, so that the operator retries the pass. The patch tests preconditions, and
/// the error does not show whether such a test failed. If a test failed, the retry starts from the changed object.
fn may_pass(error: CallError) -> CallError {
    let class = if error.is_final() { Class::Transient(None) } else { error.class };
    CallError { class, ..error }
}
