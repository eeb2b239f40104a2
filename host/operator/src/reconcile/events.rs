//! Writes Events about changes of an object, for `kubectl describe`.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Mutex,
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use kaos_policy::cut::{NOTE, cut};
use kube::{Client, api::ApiResource};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{api::Calls, mark::Mark, status::times::Transition};
use crate::{hashing::hash, locking::lock};

/// Time during which the operator does not repeat an Event.
const QUIET: Duration = Duration::from_mins(10);
/// Number of Events that the operator remembers in order not to repeat them.
const REMEMBERED: usize = 4096;

/// Writes Events, and remembers them in order not to repeat them.
#[derive(Debug)]
pub(crate) struct Events {
    instance: String,
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    at: BTreeMap<Mark, Instant>,
    order: VecDeque<Mark>,
}

impl Events {
    /// `instance` distinguishes this process from other replicas.
    pub(crate) fn new(instance: String) -> Self {
        Self { instance, told: Mutex::default() }
    }

    /// Writes an Event about an object. A failed write is only logged: the conditions or the log have the same content.
    pub(crate) async fn write(
        &self,
        client: &Client,
        now: Timestamp,
        object: &Value,
        Transition { reason, message, warning }: &Transition,
    ) {
        let metadata = &object["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let (namespace, name) = (text("namespace"), text("name"));
        let told = hash((text("uid"), reason, message));
        if !self.is_news(told) {
            return;
        }
        let event = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"namespace": namespace, "name": event_name(name, told, now.as_nanosecond())},
            "eventTime": format!("{now:.6}"),
            "type": if *warning { "Warning" } else { "Normal" },
            "reason": reason,
            "action": "Reconcile",
            "note": cut(message, NOTE),
            "reportingController": "kaos.tools/operator",
            "reportingInstance": self.instance,
            "regarding": {
                "apiVersion": object["apiVersion"],
                "kind": object["kind"],
                "namespace": namespace,
                "name": name,
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            },
        });
        let events = ApiResource::erase::<Event>(&());
        if let Err(error) = Calls::namespaced(client, &events, namespace).create(&event).await {
            tracing::debug!(%error, reason, "could not write an Event");
        }
    }

    /// Whether an Event is new. Remembers the Event.
    fn is_news(&self, event: Mark) -> bool {
        let mut told = lock(&self.told);
        let now = Instant::now();
        if told.at.get(&event).is_some_and(|at| now.duration_since(*at) < QUIET) {
            return false;
        }
        if told.at.insert(event, now).is_none() {
            told.order.push_back(event);
        }
        while told.order.len() > REMEMBERED {
            if let Some(oldest) = told.order.pop_front() {
                told.at.remove(&oldest);
            }
        }
        true
    }
}

/// A unique name: the object's name, shortened if necessary, and a hash.
fn event_name(object: &str, told: Mark, now: i128) -> String {
    let suffix = format!(".{:016x}", told ^ hash(now));
    let end = object.len().min(253 - suffix.len());
    format!("{}{suffix}", object[..end].trim_end_matches(['.', '-']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_event_is_repeated_only_after_the_quiet_time() {
        let events = Events::new("a".to_owned());
        assert!(events.is_news(1));
        assert!(!events.is_news(1));
        assert!(events.is_news(2));
        tokio::time::advance(QUIET).await;
        assert!(events.is_news(1));
    }

    #[test]
    fn a_name_fits_however_long_the_object_is_called() {
        assert!(event_name(&"a".repeat(253), 1, 2).len() <= 253);
        assert_ne!(event_name("a", 1, 2), event_name("a", 1, 3));
    }
}
