//! Events: expire one hour after their last occurrence, the default of the API server's `--event-ttl`.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::Moment;
use crate::{
    state::State,
    storage::{GroupResource, Key},
};

/// The lifetime of an Event.
const TTL: Duration = Duration::from_hours(1);

/// Deletes an expired Event. For another Event, returns the time until it expires.
pub(super) fn sync(state: &mut State, key: &Key, moment: &Moment<'_>) -> Option<Duration> {
    let events = GroupResource::new("", "events");
    let event = state.store.get(&events, key)?;
    let happened = last_time(event).unwrap_or(moment.now);
    let age = Duration::try_from(moment.now.duration_since(happened)).unwrap_or_default();
    if age >= TTL {
        state.store.remove(&events, key);
        return None;
    }
    TTL.checked_sub(age)
}

/// Returns the last occurrence of an Event, the latest of its times.
fn last_time(event: &Value) -> Option<Timestamp> {
    let times = ["/metadata/creationTimestamp", "/eventTime", "/lastTimestamp", "/series/lastObservedTime"];
    times.iter().filter_map(|path| event.pointer(path)?.as_str()?.parse().ok()).max()
}
