//! Sends the parts of an open page that changed, as server-sent events. The browser names the page and the digests of
//! the parts that it has.

use std::{collections::HashMap, convert::Infallible, sync::Arc, time::Duration};

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
use tokio::sync::watch;

use super::{
    model::Model,
    page::{self, Address, Page, Part},
};
use crate::{cli::output::complain, error_text::with_causes};

/// After a change, the server waits for this time, because changes often come in groups.
const QUIET: Duration = Duration::from_millis(400);
/// The delay after an error.
const PAUSE: Duration = Duration::from_secs(5);

/// An open page.
struct OpenPage {
    model: Arc<Model>,
    address: Address,
    /// The digests of the parts that the browser has.
    seen: HashMap<String, String>,
    changes: watch::Receiver<u64>,
    is_gone: bool,
}

/// Answers with a stream of changed parts.
pub(super) async fn events(State(model): State<Arc<Model>>, RawQuery(query): RawQuery) -> Response {
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
    let changes = model.changes();
    let page = OpenPage { model, address, seen, changes, is_gone: false };
    let stream = unfold(page, async |mut page| {
        let event = page.next().await?;
        Some((Ok::<_, Infallible>(event), page))
    });
    Sse::new(stream).keep_alive(KeepAlive::default()).into_response()
}

impl OpenPage {
    /// Waits for a change of the page. Returns `None` after the page's object is gone.
    async fn next(&mut self) -> Option<Event> {
        while !self.is_gone {
            self.changes.mark_unchanged();
            let (model, address) = (Arc::clone(&self.model), self.address.clone());
            match self.model.blocking(async move || page::build(&model, &address).await).await {
                Ok(Page { status, .. }) if status != StatusCode::OK => {
                    self.is_gone = true;
                    return Some(Event::default().event("gone").data("the object does not exist any more"));
                }
                Ok(page) => {
                    let changed = self.changed(&page.parts);
                    if !changed.is_empty() {
                        return Some(Event::default().event("parts").data(Value::from(changed).to_string()));
                    }
                }
                Err(error) => {
                    complain("note", format_args!("a page may be out of date: {}", with_causes(error.as_ref())));
                    tokio::time::sleep(PAUSE).await;
                }
            }
            self.changes.changed().await.ok()?;
            tokio::time::sleep(QUIET).await;
        }
        None
    }

    /// Returns the parts that the browser does not have yet.
    fn changed(&mut self, parts: &[Part]) -> Vec<Value> {
        let mut changed = Vec::new();
        for part in parts {
            let digest = part.digest();
            if self.seen.get(part.id) != Some(&digest) {
                changed.push(json!({"id": part.id, "digest": digest, "html": part.body.0}));
                self.seen.insert(part.id.to_owned(), digest);
            }
        }
        changed
    }
}
