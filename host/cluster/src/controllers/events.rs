//! Events: deletes each Event one hour after its last occurrence, like an API server with the default `--event-ttl`. If
//! the cluster has too many Events, deletes the oldest ones earlier, because it keeps Events in memory.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Moment;
use crate::{
    state::State,
    storage::{GroupResource, Key, meta},
};

/// The lifetime of an Event.
const TTL: Duration = Duration::from_hours(1);

/// The content of a controller's Event.
pub(super) struct EventText<'a> {
    /// `Normal` or `Warning`.
    pub(super) kind: &'a str,
    pub(super) reason: &'a str,
    pub(super) message: String,
    /// The name of the controller.
    pub(super) by: &'a str,
}

/// Records an Event about an object, unless an Event with this name exists.
pub(super) fn record(state: &mut State, about: &Value, name: &str, told: &EventText<'_>, moment: &Moment<'_>) {
    let (events, namespace, now) = (GroupResource::new("", "events"), meta(about, "namespace"), moment.text());
    let key = Key::new(namespace, name);
    if state.store.get(&events, &key).is_some() {
        return;
    }
    let EventText { kind, reason, message, by } = told;
    let event = json!({"apiVersion": "v1", "kind": "Event",
        "metadata": {"name": name, "namespace": namespace, "uid": state.uid(), "creationTimestamp": now},
        "involvedObject": {"apiVersion": about["apiVersion"], "kind": about["kind"], "namespace": namespace,
            "name": meta(about, "name"), "uid": meta(about, "uid"), "resourceVersion": meta(about, "resourceVersion")},
        "reason": reason, "message": message, "type": kind, "count": 1, "eventTime": null,
        "firstTimestamp": now, "lastTimestamp": now, "source": {"component": by},
        "reportingComponent": by, "reportingInstance": ""});
    state.store.put(&events, &key, event);
}

/// Deletes an Event that has expired. For any other Event, returns the time until the Event expires.
pub(super) fn sync(state: &mut State, key: &Key, moment: &Moment<'_>) -> Option<Duration> {
    let events = GroupResource::new("", "events");
    let event = state.store.get(&events, key)?;
    let happened = last_time(event).unwrap_or(moment.now);
    let age = Duration::try_from(moment.now.duration_since(happened)).unwrap_or_default();
    if age >= TTL {
        state.store.remove(&events, key);
        return None;
    }
    trim(state, &events);
    TTL.checked_sub(age)
}

/// If there are more Events than the limit allows, deletes the oldest. Deletes more Events than necessary, so that not
/// every new Event needs a search for the oldest Event.
fn trim(state: &mut State, events: &GroupResource) {
    let count = state.store.count(events);
    if count <= state.events {
        return;
    }
    let mut by_age: Vec<_> = state.store.list(events, "").map(|(key, event)| (last_time(event), key.clone())).collect();
    by_age.sort_unstable();
    for (_, key) in by_age.into_iter().take(count - state.events + state.events / 8) {
        state.store.remove(events, &key);
    }
}

/// Returns the time of an Event's last occurrence, which is the latest of its times. `None` if the Event has no time.
fn last_time(event: &Value) -> Option<Timestamp> {
    let times = ["/metadata/creationTimestamp", "/eventTime", "/lastTimestamp", "/series/lastObservedTime"];
    times.iter().filter_map(|path| event.pointer(path)?.as_str()?.parse().ok()).max()
}
