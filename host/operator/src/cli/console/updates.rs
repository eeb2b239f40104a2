//! Sends the parts of an open page that changed, as server-sent events. The browser sends the address of the page and
//! the digests of the parts that it has.
//!
//! | event | meaning |
//! |---|---|
//! | `parts` | the parts that changed |
//! | `fresh` | the page shows the newest state |
//! | `stale` | the page may be out of date, with the reason |
//! | `reload` | the page has other parts now, so the browser must load it again |
//! | `gone` | the object of the page does not exist any more |

#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    sync::Arc,
    time::Duration,
};

use axum::{
    extract::{RawQuery, State},
    http::StatusCode,
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use futures_util::stream::unfold;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::{
    model::{Interest, Model, OpenPage},
    page::{self, Address, Page, Part},
    site::Site,
};
use crate::{cli::output::complain, error_text::with_causes};

/// After a change, the server waits for this time, because changes often come in groups.
const QUIET: Duration = Duration::from_millis(400);
/// After a change, the server waits at least this many times as long as the last build of the page took. So open pages
/// that change all the time do not use the processor all the time.
const REST: u32 = 9;
/// The delay after an error.
const PAUSE: Duration = Duration::from_secs(5);
/// A page with objects that the console does not watch, such as pods and Events, is built again after this time.
const REFRESH: Duration = Duration::from_secs(15);

/// A page that is open in a browser, and the updates that the server must still send to this browser.
struct FollowedPage {
    model: Arc<Model>,
    base: Arc<str>,
    address: Address,
    /// The digests of the parts that the browser has.
    seen: HashMap<String, String>,
    open: OpenPage,
    /// The result of the last build of the page; `None` before the first build.
    last: Option<Built>,
    /// The updates to send.
    updates: VecDeque<Update>,
    /// The last message to the browser about the state of the page: true if the page shows the newest state, false if
    /// it may be out of date. `None` before the first such message.
    is_fresh: Option<bool>,
    has_ended: bool,
}

/// A message to the browser about the page.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Update {
    Parts(Vec<Value>),
    Fresh,
    Stale(String),
    Reload,
    Gone,
}

impl Update {
    fn event(self) -> Event {
        let (name, data) = match self {
            Self::Parts(parts) => ("parts", Value::from(parts).to_string()),
            // Send some data: a browser ignores an event without data.
            Self::Fresh => ("fresh", "the page shows the newest state".to_owned()),
            // Send one line: a line break in the data would start another field of the event.
            Self::Stale(why) => ("stale", why.replace(['\r', '\n'], " ")),
            Self::Reload => ("reload", "the page has other parts now".to_owned()),
            Self::Gone => ("gone", "the object does not exist any more".to_owned()),
        };
        Event::default().event(name).data(data)
    }
}

/// The result of building a page.
#[derive(Debug, Clone, Copy)]
enum Built {
    /// The time that the building took, and whether the page shows objects that the console does not watch.
    Page { cost: Duration, is_unwatched: bool },
    /// The build failed. The console builds the page again after a pause, even without a change.
    Failed,
}

/// Answers with a stream of changed parts.
pub(super) async fn events(State(Site { model, base }): State<Site>, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let value = |of: &str| {
        let found = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == of);
        found.map(|(_, value)| value.into_owned()).unwrap_or_default()
    };
    let Some(address) = Address::parse(&value("page")) else {
        return (StatusCode::NOT_FOUND, "there is no such page\n").into_response();
    };
    let seen = value("seen");
    let seen = seen.split(',').filter_map(|part| part.split_once(':'));
    let seen = seen.map(|(id, digest)| (id.to_owned(), digest.to_owned())).collect();
    let stream = unfold(FollowedPage::new(model, base, address, seen), async |mut page| {
        let update = page.next().await?;
        Some((Ok::<_, Infallible>(update.event()), page))
    });
    Sse::new(stream).keep_alive(KeepAlive::default()).into_response()
}

impl FollowedPage {
    fn new(model: Arc<Model>, base: Arc<str>, address: Address, seen: HashMap<String, String>) -> Self {
        let open = model.open_page();
        let (last, updates, is_fresh, has_ended) = (None, VecDeque::new(), None, false);
        Self { model, base, address, seen, open, last, updates, is_fresh, has_ended }
    }

    /// Waits for an update. Returns `None` after the last update.
    async fn next(&mut self) -> Option<Update> {
        loop {
            if let Some(update) = self.updates.pop_front() {
                return Some(update);
            }
            if self.has_ended {
                return None;
            }
            if let Some(last) = self.last {
                self.changed(last).await;
            }
            self.build().await;
        }
    }

    /// Waits until the page may have changed.
    async fn changed(&self, last: Built) {
        let Built::Page { cost, is_unwatched } = last else {
            sleep(PAUSE).await;
            return;
        };
        if is_unwatched {
            let _is_due = timeout(REFRESH, self.open.changed()).await;
        } else {
            self.open.changed().await;
        }
        sleep(QUIET.max(cost * REST)).await;
    }

    /// Builds the page, and adds an update for each difference from the page in the browser.
    async fn build(&mut self) {
        self.open.begin();
        let start = Instant::now();
        let (model, address) = (Arc::clone(&self.model), self.address.clone());
        match self.model.blocking(async move |_| page::build(&model, &address, page::Extent::Parts).await).await {
            Ok(page) => {
                self.last = Some(Built::Page { cost: start.elapsed(), is_unwatched: page.is_unwatched });
                self.open.shows(page.interest.clone());
                self.compare(&page);
            }
            Err(error) => {
                self.open.shows(Interest::default());
                self.fail(with_causes(error.as_ref()));
                self.last = Some(Built::Failed);
            }
        }
    }

    fn compare(&mut self, page: &Page) {
        let is_other = |part: &Part| !self.seen.is_empty() && !self.seen.contains_key(part.id);
        if page.status != StatusCode::OK {
            self.end(Update::Gone);
        } else if page.parts.iter().any(is_other) {
            self.end(Update::Reload);
        } else {
            let changed = self.changed_parts(&page.parts);
            if !changed.is_empty() {
                self.updates.push_back(Update::Parts(changed));
            }
            if self.is_fresh.replace(true) != Some(true) {
                self.updates.push_back(Update::Fresh);
            }
        }
    }

    fn end(&mut self, last: Update) {
        self.updates.push_back(last);
        self.has_ended = true;
    }

    fn fail(&mut self, why: String) {
        if self.is_fresh.replace(false) != Some(false) {
            complain("note", format_args!("a page may be out of date: {why}"));
            self.updates.push_back(Update::Stale(why));
        }
    }

    /// Returns the parts that the browser does not have yet.
    fn changed_parts(&mut self, parts: &[Part]) -> Vec<Value> {
        let mut changed = Vec::new();
        for part in parts {
            let digest = part.digest();
            if self.seen.get(part.id) != Some(&digest) {
                changed.push(json!({"id": part.id, "digest": digest, "html": part.html(&self.base)}));
                self.seen.insert(part.id.to_owned(), digest);
            }
        }
        changed
    }
}
