//! Follows one collection: lists it, watches it, and continues after every error.
//!
//! A [`Sink`] receives the objects. After every error, the reflector waits and retries. The reflector lists again only
//! if the server has forgotten the version of the watch. In case an event was lost, the reflector also lists again
//! after a long time.

use std::{pin::pin, sync::Arc, time::Duration};

use fastrand::Rng;
use futures_util::AsyncBufReadExt as _;
use kaos_objects::ResourceType;
use kube::{
    Client,
    api::{ListParams, WatchParams},
    core::Request,
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};

use super::{
    cached_object::{Arrived, Extract, Unusable, version_of},
    dictionary::Dictionary,
    event::Event,
    page::{self, Page},
    page_request::PageSize,
    watch_error::{WatchError, in_time},
};
use crate::backoff::{Backoff, in_millis};

/// The annotation that marks the end of the initial events of a streaming list.
const INITIAL_END: &str = "k8s.io/initial-events-end";
/// The maximum time that a watch lasts beyond the timeout in its request.
const WATCH_END_GRACE: Duration = Duration::from_secs(15);
/// A watch that lived this long is treated as successful, even without events.
const WATCH_SUCCESS_AGE: Duration = Duration::from_secs(5);
/// Time within which a server must send all initial events. If a server needs longer, the reflector assumes that the
/// server has no streaming lists.
const INITIAL_EVENTS_TIMEOUT: Duration = Duration::from_mins(1);
/// Number of failures in a row after which the reflector stops using streaming lists. The reflector uses streaming
/// lists again after a watch has worked.
const STREAMING_FAILURE_LIMIT: u32 = 3;

/// The receiver of a collection's objects.
pub(super) trait Sink: Send + Sync {
    /// Applies a complete list.
    fn relist(&self, listed: Vec<Arrived>, version: u64);
    /// Applies an event of the watch.
    fn event(&self, event: Event);
    /// Records an error, or `None` when the watch works again.
    fn trouble(&self, broken: Option<&WatchError>);
    /// Returns the version from which a watch continues.
    fn reached(&self) -> u64;
    /// Returns whether the cache contains this version of an object, or a later one.
    fn knows(&self, namespace: &str, name: &str, version: u64) -> bool;
    /// Reports an object that cannot be cached.
    fn malformed(&self, what: &str);
}

/// A collection of objects, with the details of its requests.
#[derive(Debug, Clone)]
pub(super) struct Collection {
    pub(super) of: ResourceType,
    pub(super) path: String,
    pub(super) labels: Option<String>,
    pub(super) fields: Option<String>,
    pub(super) by_metadata: bool,
    pub(super) extract: Extract,
    /// Compresses the texts of the objects.
    pub(super) dictionary: Arc<Dictionary>,
}

/// Times and sizes of the requests.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) watch: Duration,
    pub(super) relist: Duration,
    pub(super) backoff: Backoff,
    pub(super) page: PageSize,
}

/// Follows a collection.
pub(super) struct Reflector<S> {
    client: Client,
    collection: Collection,
    sink: S,
    pace: Pace,
    rng: Rng,
    /// Signals that rights have returned.
    rights: watch::Receiver<u64>,
    failures: u32,
    /// How often the server forgot the version of the watch since the last event.
    forgotten: u32,
    streaming: bool,
    paged: bool,
    /// Whether the last attempt to list all objects completed.
    listed: bool,
}

#[derive(Deserialize)]
struct Line<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// The part of an event that shows whether the rest must be parsed.
#[derive(Deserialize)]
struct Head<'a> {
    r#type: &'a str,
    #[serde(borrow)]
    object: HeadObject<'a>,
}

#[derive(Deserialize)]
struct HeadObject<'a> {
    #[serde(borrow)]
    metadata: HeadMetadata<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadMetadata<'a> {
    #[serde(default)]
    namespace: &'a str,
    name: &'a str,
    resource_version: &'a str,
}

impl<S: Sink> Reflector<S> {
    pub(super) fn new(
        client: Client,
        collection: Collection,
        sink: S,
        pace: Pace,
        streaming: bool,
        (rng, rights): (Rng, watch::Receiver<u64>),
    ) -> Self {
        let (failures, forgotten, paged, listed) = (0, 0, true, false);
        Self { client, collection, sink, pace, rng, rights, failures, forgotten, streaming, paged, listed }
    }

    /// Follows the collection until the future is dropped.
    pub(super) async fn run(mut self) {
        loop {
            let relist = Instant::now() + self.jittered(self.pace.relist);
            self.listed = false;
            let streams = self.streaming && self.failures < STREAMING_FAILURE_LIMIT;
            let started = if streams { self.stream(true).await } else { self.list().await };
            if let Err(broken) = started {
                self.failed(&broken).await;
                if !self.listed || broken == WatchError::Gone {
                    continue;
                }
            }
            while Instant::now() < relist {
                match self.stream(false).await {
                    Ok(()) => {}
                    Err(WatchError::Gone) => {
                        // The server no longer knows the version. The first time, the reflector lists at once, because
                        // the cache may still contain deleted objects. If this happens again before any event arrives,
                        // the reflector waits first. Without this wait, the reflector would send one list after the
                        // other.
                        if self.forgotten > 0 {
                            self.failed(&WatchError::Gone).await;
                        }
                        self.forgotten = self.forgotten.saturating_add(1);
                        break;
                    }
                    Err(broken) => self.failed(&broken).await,
                }
            }
        }
    }

    async fn failed(&mut self, broken: &WatchError) {
        self.failures = self.failures.saturating_add(1);
        self.sink.trouble(Some(broken));
        let wait = self.pace.backoff.after(self.failures, &mut self.rng);
        tokio::select! {
            biased;
            _ = self.rights.changed(), if broken.is_denial() => {}
            () = tokio::time::sleep(wait.max(broken.wait())) => {}
        }
    }

    fn jittered(&mut self, time: Duration) -> Duration {
        in_millis(time.mul_f64(0.9 + self.rng.f64() / 10.0))
    }

    async fn list(&mut self) -> Result<(), WatchError> {
        let mut all = Page::default();
        let mut next = None;
        let mut size = PageSize { objects: self.pace.page.objects.filter(|_| self.paged), ..self.pace.page };
        let path = Request::new(&self.collection.path);
        loop {
            let request = |limit| {
                let params = ListParams {
                    label_selector: self.collection.labels.clone(),
                    field_selector: self.collection.fields.clone(),
                    limit,
                    continue_token: next.clone(),
                    ..ListParams::default()
                };
                if self.collection.by_metadata { path.list_metadata(&params) } else { path.list(&params) }
            };
            let text = size.next_page(&self.client, request).await.inspect_err(|broken| {
                // The continue token of a list expires if listing takes too long. After such an error, request all
                // objects in one page.
                self.paged &= *broken != WatchError::Gone;
            })?;
            let Page { items, malformed, version, next: more } =
                page::decode(&text, &self.collection.of, self.collection.extract)?;
            all.items.extend(items.into_iter().map(|item| item.packed(&self.collection.dictionary)));
            all.malformed.extend(malformed);
            all.version = version;
            next = more;
            if next.is_none() {
                break;
            }
        }
        self.paged = true;
        for what in &all.malformed {
            self.sink.malformed(what);
        }
        let version = all.version.parse().map_err(|_| WatchError::odd("the list has no resourceVersion"))?;
        self.sink.relist(all.items, version);
        self.listed = true;
        Ok(())
    }

    /// Watches from the reached version. With `from_start`, asks the server to send all objects first. Returns `Ok`
    /// when the server ends the watch.
    async fn stream(&mut self, from_start: bool) -> Result<(), WatchError> {
        let start = Instant::now();
        let time = self.jittered(self.pace.watch);
        let params = WatchParams {
            label_selector: self.collection.labels.clone(),
            field_selector: self.collection.fields.clone(),
            timeout: Some(u32::try_from(time.as_secs()).unwrap_or(u32::MAX).max(1)),
            bookmarks: true,
            send_initial_events: from_start,
        };
        let from = if from_start { String::new() } else { self.sink.reached().to_string() };
        let request = Request::new(&self.collection.path);
        let request = if self.collection.by_metadata {
            request.watch_metadata(&params, &from)
        } else {
            request.watch(&params, &from)
        };
        let mut request = request.map_err(kube::Error::BuildRequest)?;
        // Ask for an uncompressed stream: a compressed stream consists of several gzip members, and the client reads
        // only the first member.
        let identity = http::HeaderValue::from_static("identity");
        request.headers_mut().insert(http::header::ACCEPT_ENCODING, identity);
        let deadline = start + time + WATCH_END_GRACE;
        let stream = match in_time(self.client.request_stream(request)).await {
            Ok(stream) => stream,
            Err(broken) => {
                if from_start && broken.is_refusal() {
                    self.streaming = false;
                    return self.list().await;
                }
                return Err(broken);
            }
        };
        if !from_start {
            self.sink.trouble(None);
        }
        let mut stream = pin!(stream);
        let mut initial = from_start.then(Vec::new);
        let mut buffer = Vec::new();
        let mut fruitful = false;
        loop {
            buffer.clear();
            let until = if initial.is_some() { deadline.min(start + INITIAL_EVENTS_TIMEOUT) } else { deadline };
            let Ok(read) = timeout_at(until, stream.read_until(b'\n', &mut buffer)).await else {
                if initial.is_some() {
                    // The server did not send the annotation that ends the initial events, so it probably has no
                    // streaming lists.
                    self.streaming = false;
                }
                return Err(WatchError::Silent);
            };
            let length = read.map_err(|error| WatchError::cut(&error))?;
            if length == 0 {
                break;
            }
            if !buffer.ends_with(b"\n") {
                return Err(WatchError::odd("the watch ended in the middle of an event"));
            }
            let is_listing = initial.is_some();
            self.line(&buffer, &mut initial)?;
            fruitful = true;
            if !is_listing {
                self.heard();
            }
        }
        if initial.is_some() {
            return Err(WatchError::odd("the watch ended before the API server had sent all objects"));
        }
        if !fruitful && start.elapsed() < WATCH_SUCCESS_AGE {
            return Err(WatchError::odd("the watch ended at once"));
        }
        self.heard();
        Ok(())
    }

    /// Records that the watch works.
    fn heard(&mut self) {
        self.failures = 0;
        self.forgotten = 0;
    }

    /// Returns the version of an event if the cache already contains this version. For most of the operator's own
    /// writes, the answer arrives before the event.
    fn known(&self, line: &[u8]) -> Option<u64> {
        let Head { r#type: kind, object: HeadObject { metadata } } = serde_json::from_slice(line).ok()?;
        let version = metadata.resource_version.parse().ok()?;
        let known = matches!(kind, "ADDED" | "MODIFIED") && self.sink.knows(metadata.namespace, metadata.name, version);
        known.then_some(version)
    }

    /// Applies one event.
    fn line(&mut self, line: &[u8], initial: &mut Option<Vec<Arrived>>) -> Result<(), WatchError> {
        if initial.is_none()
            && let Some(version) = self.known(line)
        {
            self.sink.event(Event::Bookmark(version));
            return Ok(());
        }
        let Line { r#type: kind, object: sent } = serde_json::from_slice(line)?;
        match kind {
            "ERROR" => return Err(WatchError::of_status(&serde_json::from_str(sent.get())?)),
            "BOOKMARK" => {
                let object: Value = serde_json::from_str(sent.get())?;
                let version = version_of(object["metadata"].get("resourceVersion"));
                let version = version.ok_or_else(|| WatchError::odd("a bookmark has no resourceVersion"))?;
                let ends = object["metadata"]["annotations"][INITIAL_END] == "true";
                match initial.take_if(|_| ends) {
                    Some(listed) => {
                        self.sink.relist(listed, version);
                        self.listed = true;
                    }
                    None if initial.is_none() => self.sink.event(Event::Bookmark(version)),
                    None => {}
                }
                return Ok(());
            }
            _ => {}
        }
        let arrived = match Arrived::read(sent, &self.collection.of, self.collection.extract) {
            Ok(arrived) => arrived.packed(&self.collection.dictionary),
            Err(Unusable { what, version, left }) => {
                self.sink.malformed(&what);
                match (left, version) {
                    (Some(left), _) => *left,
                    (None, Some(version)) if initial.is_none() => {
                        self.sink.event(Event::Bookmark(version));
                        return Ok(());
                    }
                    _ => return Ok(()),
                }
            }
        };
        match (kind, initial) {
            ("ADDED" | "MODIFIED", Some(initial)) => initial.push(arrived),
            ("ADDED" | "MODIFIED", None) => self.sink.event(Event::Is(arrived)),
            ("DELETED", None) => self.sink.event(Event::Gone(arrived)),
            ("DELETED", Some(initial)) => {
                initial.retain(|known| known.name != arrived.name || known.namespace != arrived.namespace);
            }
            (other, _) => return Err(WatchError::odd(&format!("an event of the unknown type {other}"))),
        }
        Ok(())
    }
}
