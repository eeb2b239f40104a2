//! The body of a watch: events, bookmarks and a timeout.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use http_body::Frame;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::body::Disconnected;
use crate::{
    api::{self, Presentation, Watch, WatchEvent},
    faults::{Attempt, EventFate},
    inner::Inner,
    signal,
};

/// The interval between bookmarks.
const BOOKMARKS: Duration = Duration::from_mins(1);

/// A watch whose events the server is sending to the client.
pub(crate) struct Watcher {
    cluster: Arc<Inner>,
    watch: Watch,
    attempt: Attempt,
    queue: VecDeque<WatchEvent>,
    changed: signal::Receiver,
    cuts: signal::Receiver,
    deadline: Instant,
    bookmark: Instant,
    #[cfg_attr(not(feature = "kubectl"), expect(dead_code, reason = "only tables have heads"))]
    heads: bool,
    ended: bool,
}

impl Watcher {
    pub(crate) fn new(
        cluster: Arc<Inner>,
        mut watch: Watch,
        attempt: Attempt,
        changed: signal::Receiver,
        cuts: signal::Receiver,
    ) -> Self {
        let now = Instant::now();
        Self {
            queue: std::mem::take(&mut watch.initial),
            deadline: now + watch.timeout,
            bookmark: now + BOOKMARKS,
            heads: true,
            ended: false,
            cluster,
            watch,
            attempt,
            changed,
            cuts,
        }
    }

    /// Returns the events as frames of the answer's body.
    pub(crate) fn frames(self) -> impl Stream<Item = Result<Frame<Bytes>, Disconnected>> {
        stream::unfold(self, |mut watcher| async move {
            let next = watcher.next().await?;
            Some((next.map(Frame::data), watcher))
        })
    }

    async fn next(&mut self) -> Option<Result<Bytes, Disconnected>> {
        loop {
            if self.cuts.has_changed() && !self.ended {
                self.ended = true;
                return Some(Err(Disconnected));
            }
            if self.ended {
                return None;
            }
            if let Some(event) = self.queue.pop_front() {
                match self.cluster.fate_of_event(&self.attempt, event.kind) {
                    EventFate::Deliver => {}
                    EventFate::Drop => continue,
                    EventFate::Duplicate => self.queue.push_front(event.clone()),
                    EventFate::Delay(time) => tokio::time::sleep(time).await,
                    EventFate::Expire => return Some(Ok(self.expire(0))),
                    EventFate::Cut => {
                        self.ended = true;
                        return Some(Err(Disconnected));
                    }
                }
                return Some(Ok(self.line(&event)));
            }
            if let Some(line) = self.advance() {
                return Some(Ok(line));
            }
            if !self.queue.is_empty() || self.ended {
                continue;
            }
            let bookmark = if self.watch.bookmarks { self.bookmark } else { self.deadline };
            tokio::select! {
                biased;
                _ = self.cuts.changed() => {
                    self.ended = true;
                    return Some(Err(Disconnected));
                }
                changed = self.changed.changed() => if changed.is_err() { return None },
                () = tokio::time::sleep_until(self.deadline) => return None,
                () = tokio::time::sleep_until(bookmark) => {
                    self.bookmark = Instant::now() + BOOKMARKS;
                    let event = self.watch.bookmark();
                    self.queue.push_back(event);
                }
            }
        }
    }

    /// Reads the changes from the log. If the log no longer contains the watch's revision, returns the error that ends
    /// the stream.
    fn advance(&mut self) -> Option<Bytes> {
        self.changed.look();
        let watch = &mut self.watch;
        match self.cluster.with_state(|state| api::watch_is_served(state, watch).then(|| watch.advance(state))) {
            Some(Ok(events)) => {
                self.queue.extend(events);
                None
            }
            Some(Err(expired)) => Some(self.expire(expired.oldest)),
            None => {
                self.ended = true;
                None
            }
        }
    }

    fn expire(&mut self, oldest: u64) -> Bytes {
        self.ended = true;
        encode(&json!({"type": "ERROR", "object": self.watch.expired(oldest)}))
    }

    fn line(&mut self, event: &WatchEvent) -> Bytes {
        let object = match self.watch.form {
            Presentation::Whole => return encode(&json!({"type": event.kind, "object": *event.object})),
            Presentation::Metadata => api::metadata_of(&event.object),
            #[cfg(feature = "kubectl")]
            Presentation::Table => {
                let metadata = json!({"resourceVersion": event.object["metadata"]["resourceVersion"]});
                let items = if event.kind == "BOOKMARK" { &[][..] } else { std::slice::from_ref(&event.object) };
                let heads = std::mem::replace(&mut self.heads, false);
                api::render_table(
                    &self.watch.resource,
                    items,
                    &metadata,
                    &self.watch.include_object,
                    heads,
                    self.cluster.now(),
                )
            }
        };
        encode(&json!({"type": event.kind, "object": object}))
    }
}

fn encode(event: &Value) -> Bytes {
    let mut line = event.to_string();
    line.push('\n');
    Bytes::from(line)
}
