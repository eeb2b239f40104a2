//! The events of a watch: first the initial events, then an event for each change.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::{Presentation, present};
use crate::{
    catalogue::Resource,
    state::State,
    status::ApiError,
    storage::{Change, Expired, FieldSelector, GroupResource, LabelSelector, meta},
};

/// A running watch.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) resource: Arc<Resource>,
    pub(super) storage: GroupResource,
    pub(super) namespace: String,
    pub(super) labels: LabelSelector,
    pub(super) fields: FieldSelector,
    /// The watch has sent all changes up to this revision.
    pub(super) revision: u64,
    /// Events that the watch sends before any change.
    pub(crate) initial: VecDeque<Event>,
    pub(crate) bookmarks: bool,
    pub(crate) timeout: Duration,
    pub(crate) form: Presentation,
    #[cfg_attr(not(feature = "kubectl"), expect(dead_code, reason = "only tables include objects"))]
    pub(crate) include_object: String,
}

/// An event of a watch.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) kind: &'static str,
    pub(crate) object: Arc<Value>,
}

/// Returns whether the watched type is still served.
pub(crate) fn is_served(state: &State, watch: &Watch) -> bool {
    let resource = &watch.resource;
    state.catalogue.find(&resource.group, &resource.version, &resource.plural).is_some()
}

impl Watch {
    /// Returns the events since the last call.
    pub(crate) fn advance(&mut self, state: &State) -> Result<Vec<Event>, Expired> {
        let changes: Vec<&Change> = state.store.since(&self.storage, self.revision)?.collect();
        let events = changes.iter().filter_map(|change| self.event(change)).collect();
        self.revision = self.revision.max(state.store.revision());
        Ok(events)
    }

    fn event(&self, change: &Change) -> Option<Event> {
        if !self.namespace.is_empty() && meta(&change.after, "namespace") != self.namespace {
            return None;
        }
        let matched = |object: &Value| {
            self.labels.matches(object)
                && (self.fields.is_empty() || self.fields.matches(&present::in_shape(&self.resource, object)))
        };
        let before = change.before.as_deref().is_some_and(matched);
        let after = !change.deleted && matched(&change.after);
        let kind = match (before, after) {
            (false, false) => return None,
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
        };
        // If an existing object no longer matches the selectors, send its last matching state, with the revision of the
        // change.
        let object = match (kind, &change.before) {
            ("DELETED", Some(before)) if !change.deleted => {
                let mut object = (**before).clone();
                object["metadata"]["resourceVersion"] = json!(change.revision.to_string());
                Arc::new(object)
            }
            _ => Arc::clone(&change.after),
        };
        Some(Event { kind, object: self.shape(&object) })
    }

    pub(super) fn shape(&self, object: &Arc<Value>) -> Arc<Value> {
        present::present(&self.resource, object)
    }

    /// Returns a bookmark at the current revision.
    pub(crate) fn bookmark(&self) -> Event {
        self.bookmark_at(self.revision, false)
    }

    pub(super) fn bookmark_at(&self, revision: u64, initial: bool) -> Event {
        let mut metadata = json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
        if initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object =
            json!({"apiVersion": self.resource.api_version(), "kind": self.resource.kind, "metadata": metadata});
        Event { kind: "BOOKMARK", object: Arc::new(object) }
    }

    /// Returns the error for a watch whose start revision is no longer in the log.
    pub(crate) fn expired(&self, oldest: u64) -> Value {
        ApiError::expired(format!("too old resource version: {} ({oldest})", self.revision)).to_status()
    }
}
