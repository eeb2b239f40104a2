//! Writes Events, which `kubectl describe` shows. The writer remembers the Events of the last minutes, so that a
//! repetition creates no second Event.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Mutex,
    time::Duration,
};

use k8s_openapi::{
    api::{
        core::v1::ObjectReference,
        events::v1::{Event, EventSeries},
    },
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
    jiff::Timestamp,
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::time::Instant;

use crate::{hashing::hash, locking::lock};

/// The name of the controller in all Events.
const CONTROLLER: &str = "kaos.tools/operator";
/// Maximum number of Events that a writer remembers.
const REMEMBERED: usize = 4096;

/// An Event to write.
#[derive(Debug, Clone)]
pub struct NewEvent<'a> {
    /// The object that the Event is about.
    pub regarding: ObjectReference,
    /// Whether the Event is a warning.
    pub warning: bool,
    /// The reason, in one word.
    pub reason: &'a str,
    /// The action of the operator, in one word.
    pub action: &'a str,
    /// The message. The API server accepts at most 1024 bytes.
    pub note: &'a str,
    /// An annotation of the Event: its name and its value. Two Events that differ only in the annotation are
    /// repetitions.
    pub annotation: Option<(&'a str, &'a str)>,
}

/// How a writer handles an Event that repeats an earlier Event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// Writes nothing. Two Events are repetitions if their object, reason and note are equal.
    Skip,
    /// Increases the counter of the first Event, which keeps its note. Two Events are repetitions if their object,
    /// type, reason and action are equal.
    Count,
}

/// Writes Events, and remembers them to recognize repetitions.
pub struct EventWriter {
    client: Client,
    instance: String,
    written: Mutex<Written>,
}

#[derive(Debug, Default)]
struct Written {
    events: BTreeMap<u64, Remembered>,
    /// The hashes of the Events, the oldest first.
    order: VecDeque<u64>,
}

#[derive(Debug)]
struct Remembered {
    name: String,
    at: Instant,
    count: i32,
}

/// How the writer sends an Event to the API server.
#[derive(Debug, PartialEq, Eq)]
enum Write {
    Create(String),
    Count(String, i32),
}

impl Repeat {
    /// Returns the time after an Event during which a repetition creates no second Event.
    fn window(self) -> Duration {
        match self {
            Self::Skip => Duration::from_mins(10),
            Self::Count => Duration::from_mins(6),
        }
    }

    /// Returns a hash of an Event. Two Events that are repetitions have the same hash.
    fn identity(self, NewEvent { regarding, warning, reason, action, note, annotation: _ }: &NewEvent<'_>) -> u64 {
        match self {
            Self::Skip => hash((&regarding.uid, reason, note)),
            Self::Count => hash((&regarding.uid, &regarding.resource_version, warning, reason, action)),
        }
    }
}

impl EventWriter {
    /// Creates a writer. `instance` distinguishes this process from other replicas.
    pub fn new(client: Client, instance: String) -> Self {
        Self { client, instance, written: Mutex::default() }
    }

    /// Writes an Event. If the write fails, the writer only logs the failure. So the information in an Event must also
    /// be in a status or in the log.
    pub async fn write(&self, now: Timestamp, event: &NewEvent<'_>, repeat: Repeat) {
        let namespace = event.regarding.namespace.as_deref().filter(|it| !it.is_empty()).unwrap_or("default");
        let events: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let identity = repeat.identity(event);
        let object = event.regarding.name.as_deref().unwrap_or_default();
        let Some(write) = self.next(identity, repeat, || event_name(object, identity, now.as_nanosecond())) else {
            return;
        };
        let result = match write {
            Write::Create(name) => {
                events.create(&PostParams::default(), &self.event(event, namespace, name, now)).await
            }
            Write::Count(name, count) => {
                let series = EventSeries { count, last_observed_time: MicroTime(now) };
                events.patch(&name, &PatchParams::default(), &Patch::Merge(json!({"series": series}))).await
            }
        };
        if let Err(error) = result {
            if repeat == Repeat::Count {
                lock(&self.written).forget(identity);
            }
            tracing::debug!(%error, reason = event.reason, "could not write an Event");
        }
    }

    /// Decides how to write an Event, and remembers the Event. Returns `None` if the Event is a repetition that the
    /// writer skips.
    fn next(&self, identity: u64, repeat: Repeat, name: impl FnOnce() -> String) -> Option<Write> {
        let now = Instant::now();
        let mut written = lock(&self.written);
        if let Some(before) = written.events.get_mut(&identity).filter(|it| now - it.at < repeat.window()) {
            if repeat == Repeat::Skip {
                return None;
            }
            before.at = now;
            before.count = before.count.saturating_add(1);
            return Some(Write::Count(before.name.clone(), before.count));
        }
        let name = name();
        written.remember(identity, Remembered { name: name.clone(), at: now, count: 1 });
        Some(Write::Create(name))
    }

    fn event(&self, event: &NewEvent<'_>, namespace: &str, name: String, now: Timestamp) -> Event {
        let NewEvent { regarding, warning, reason, action, note, annotation } = event;
        let annotations = annotation.map(|(name, value)| [(name.to_owned(), value.to_owned())].into());
        let namespace = Some(namespace.to_owned());
        Event {
            metadata: ObjectMeta { namespace, name: Some(name), annotations, ..ObjectMeta::default() },
            event_time: Some(MicroTime(now)),
            type_: Some(if *warning { "Warning" } else { "Normal" }.to_owned()),
            reason: Some((*reason).to_owned()),
            action: Some((*action).to_owned()),
            note: Some((*note).to_owned()).filter(|note| !note.is_empty()),
            reporting_controller: Some(CONTROLLER.to_owned()),
            reporting_instance: Some(self.instance.clone()),
            regarding: Some(regarding.clone()),
            ..Event::default()
        }
    }
}

impl Written {
    fn remember(&mut self, identity: u64, event: Remembered) {
        if self.events.insert(identity, event).is_none() {
            self.order.push_back(identity);
        }
        while self.order.len() > REMEMBERED {
            if let Some(oldest) = self.order.pop_front() {
                self.events.remove(&oldest);
            }
        }
    }

    fn forget(&mut self, identity: u64) {
        if self.events.remove(&identity).is_some() {
            self.order.retain(|it| *it != identity);
        }
    }
}

/// Returns a unique name for an Event: the object's name, shortened if necessary, and a hash.
fn event_name(object: &str, identity: u64, now: i128) -> String {
    let suffix = format!(".{:016x}", identity ^ hash(now));
    let end = object.len().min(253 - suffix.len());
    format!("{}{suffix}", object[..end].trim_end_matches(['.', '-']))
}

#[cfg(test)]
mod tests {
    use kaos_cluster::{Cluster, TokioClock};
    use kube::api::{DeleteParams, ListParams};

    use super::*;

    fn about<'a>(uid: &str, note: &'a str) -> NewEvent<'a> {
        let regarding = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("ConfigMap".to_owned()),
            namespace: Some("default".to_owned()),
            name: Some("a".to_owned()),
            uid: Some(uid.to_owned()),
            ..ObjectReference::default()
        };
        NewEvent { regarding, warning: true, reason: "Changed", action: "Reconcile", note, annotation: None }
    }

    struct Bench {
        _cluster: Cluster,
        events: Api<Event>,
        writer: EventWriter,
    }

    impl Bench {
        fn start() -> Self {
            let clock = TokioClock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
            let cluster = Cluster::builder().clock(clock).start();
            let client = Client::new(cluster.service(), "default");
            let (events, writer) =
                (Api::namespaced(client.clone(), "default"), EventWriter::new(client, "me".to_owned()));
            Self { _cluster: cluster, events, writer }
        }

        async fn write(&self, event: &NewEvent<'_>, repeat: Repeat) {
            self.writer.write("2026-01-01T00:00:00Z".parse().unwrap(), event, repeat).await;
        }

        /// Returns the note and the count of each Event, sorted by the notes.
        async fn written(&self) -> Vec<(String, Option<i32>)> {
            let events = self.events.list(&ListParams::default()).await.unwrap();
            let told = |event: Event| (event.note.unwrap_or_default(), event.series.map(|series| series.count));
            let mut written: Vec<_> = events.items.into_iter().map(told).collect();
            written.sort();
            written
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_skipped_event_is_repeated_only_after_its_window() {
        let bench = Bench::start();
        bench.write(&about("1", "b"), Repeat::Skip).await;
        bench.write(&about("1", "b"), Repeat::Skip).await;
        bench.write(&about("1", "c"), Repeat::Skip).await;
        let once = vec![("b".to_owned(), None), ("c".to_owned(), None)];
        assert_eq!(bench.written().await, once);
        tokio::time::advance(Repeat::Skip.window()).await;
        let later = "2026-01-01T01:00:00Z".parse().unwrap();
        bench.writer.write(later, &about("1", "b"), Repeat::Skip).await;
        assert_eq!(bench.written().await.len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_counted_event_increases_the_counter_of_the_first_one() {
        let bench = Bench::start();
        for note in ["a", "b", "c"] {
            bench.write(&about("1", note), Repeat::Count).await;
        }
        assert_eq!(bench.written().await, [("a".to_owned(), Some(3))]);
        bench.write(&about("2", "d"), Repeat::Count).await;
        assert_eq!(bench.written().await.len(), 2, "another object has an Event of its own");
    }

    #[tokio::test(start_paused = true)]
    async fn a_counted_event_that_a_user_deleted_is_written_again() {
        let bench = Bench::start();
        bench.write(&about("1", "a"), Repeat::Count).await;
        let name = bench.events.list(&ListParams::default()).await.unwrap().items.remove(0).metadata.name.unwrap();
        bench.events.delete(&name, &DeleteParams::default()).await.unwrap();
        bench.write(&about("1", "a"), Repeat::Count).await;
        bench.write(&about("1", "a"), Repeat::Count).await;
        assert_eq!(bench.written().await, [("a".to_owned(), None)]);
    }

    #[test]
    fn the_writer_remembers_a_bounded_number_of_events() {
        let mut written = Written::default();
        for identity in 0..2 * REMEMBERED as u64 {
            written.remember(identity, Remembered { name: String::new(), at: Instant::now(), count: 1 });
        }
        assert_eq!((written.events.len(), written.order.len()), (REMEMBERED, REMEMBERED));
    }

    #[test]
    fn a_name_fits_however_long_the_object_is_called() {
        assert!(event_name(&"a".repeat(253), 1, 2).len() <= 253);
        assert_ne!(event_name("a", 1, 2), event_name("a", 1, 3));
    }
}
