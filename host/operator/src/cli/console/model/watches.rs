//! The watches of a console. Each watch uses the rights of the user, and keeps the objects of a type in memory.
//!
//! The console does not use the watcher of `kube`. After an error, that watcher does not report that the watch works
//! again until an object changes. The pages need this report, because they say which objects may be out of date.

use std::{collections::BTreeSet, pin::pin, sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use kaos_policy::stamp::{MANAGED_BY, MANAGER};
use kube::{
    Api,
    api::{DynamicObject, ListParams, WatchEvent, WatchParams},
};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::{
    state::Model,
    watched_type::{Role, WatchedType},
};
use crate::{backoff::Backoff, error_text::with_causes};

/// The number of objects in one page of a list.
const PAGE: u32 = 500;
/// The time after which the API server ends a watch, in seconds. The console continues with another watch.
const LASTS: u32 = 290;
/// If a watch is silent for this time, the console regards the connection as lost.
const SILENCE: Duration = Duration::from_mins(5);
/// The delays after errors. If many watches fail at once, the jitter spreads their next requests.
const BACKOFF: Backoff = Backoff { first: Duration::from_secs(2), max: Duration::from_mins(1) };
/// The delays after the API server refused a watch. An administrator may grant the right meanwhile.
const REFUSED: Backoff = Backoff { first: Duration::from_secs(30), max: Duration::from_mins(10) };
/// The console regards a watch that lasted this long as working, even if the watch reported no events.
const WORKED: Duration = Duration::from_secs(1);
/// The status code of the API server's answer if the server no longer remembers the version at which a watch starts.
const GONE: u16 = 410;

/// Why a watch ended.
enum End {
    /// The API server ended the watch at the agreed time, so the next watch continues at the last version that the
    /// console got.
    InTime,
    /// The API server no longer remembers the version at which the watch starts, so the console must list again.
    Forgotten,
    Failed(kube::Error),
    Silent,
}

/// Follows a watch until its end.
pub(super) async fn follow(model: Arc<Model>, watched: WatchedType) {
    watched.stop.clone().run_until_cancelled(Watch::new(model, watched).run()).await;
}

struct Watch {
    model: Arc<Model>,
    watched: WatchedType,
    api: Api<DynamicObject>,
    labels: Option<String>,
    failures: u32,
    was_forgotten: bool,
    rng: fastrand::Rng,
}

impl Watch {
    fn new(model: Arc<Model>, watched: WatchedType) -> Self {
        let WatchedType { served, place, role, .. } = &watched;
        let api = match place.as_ref().filter(|_| served.namespaced) {
            Some(namespace) => Api::namespaced_with(model.client.clone(), namespace, &served.resource),
            None => Api::all_with(model.client.clone(), &served.resource),
        };
        let labels = (*role == Role::Child).then(|| format!("{MANAGED_BY}={MANAGER}"));
        Self { model, watched, api, labels, failures: 0, was_forgotten: false, rng: fastrand::Rng::new() }
    }

    async fn run(mut self) {
        loop {
            let mut version = match self.list().await {
                Ok(version) => version,
                Err(error) => {
                    self.failed(&End::Failed(error)).await;
                    continue;
                }
            };
            loop {
                let start = Instant::now();
                match self.watch(&mut version).await {
                    End::InTime if start.elapsed() >= WORKED => {}
                    End::InTime => self.pause(BACKOFF).await,
                    End::Forgotten => break,
                    end => self.failed(&end).await,
                }
            }
            // If the API server forgot the version for the first time, list again without a delay. If the API server
            // also forgets the next version before it sends an event, wait first.
            if std::mem::replace(&mut self.was_forgotten, true) {
                self.pause(BACKOFF).await;
            }
        }
    }

    /// Reads all objects. Returns the version of the list.
    async fn list(&mut self) -> Result<String, kube::Error> {
        let params = ListParams { label_selector: self.labels.clone(), ..ListParams::default() };
        let (mut params, mut listed) = (params.limit(PAGE), BTreeSet::new());
        loop {
            let page = self.api.list(&params).await?;
            for object in page.items {
                listed.extend(self.value(object).and_then(|object| self.model.put(&self.watched, object)));
            }
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                self.model.listed(&self.watched, &listed);
                // Do not reset the delay after a forgotten version: if the API server forgets the version of each list,
                // the delay must grow.
                if !self.was_forgotten {
                    self.failures = 0;
                }
                return Ok(page.metadata.resource_version.unwrap_or_default());
            }
        }
    }

    /// Follows the changes after a version, until the watch ends.
    async fn watch(&mut self, version: &mut String) -> End {
        let params = WatchParams { label_selector: self.labels.clone(), ..WatchParams::default() };
        let events = match self.api.watch(&params.timeout(LASTS), version).await {
            Ok(events) => events,
            Err(kube::Error::Api(status)) if status.code == GONE => return End::Forgotten,
            Err(error) => return End::Failed(error),
        };
        self.model.works(&self.watched);
        let mut events = pin!(events);
        loop {
            let event = match timeout(SILENCE, events.next()).await {
                Ok(Some(Ok(event))) => event,
                Ok(Some(Err(error))) => return End::Failed(error),
                Ok(None) => return End::InTime,
                Err(_) => return End::Silent,
            };
            (self.failures, self.was_forgotten) = (0, false);
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    reach(version, &object);
                    if let Some(object) = self.value(object) {
                        self.model.put(&self.watched, object);
                    }
                }
                WatchEvent::Deleted(object) => {
                    reach(version, &object);
                    if let Some(object) = self.value(object) {
                        self.model.remove(&self.watched, &object);
                    }
                }
                WatchEvent::Bookmark(mark) => *version = mark.metadata.resource_version,
                WatchEvent::Error(status) if status.code == GONE => return End::Forgotten,
                WatchEvent::Error(status) => return End::Failed(kube::Error::Api(status)),
            }
        }
    }

    /// Reports an error, and waits.
    async fn failed(&mut self, end: &End) {
        let (is_refused, why) = match end {
            End::Failed(error) => (matches!(error, kube::Error::Api(status) if status.code == 403), with_causes(error)),
            End::InTime | End::Forgotten | End::Silent => (false, "the API server is silent".to_owned()),
        };
        self.model.failed(&self.watched, is_refused, why);
        self.pause(if is_refused { REFUSED } else { BACKOFF }).await;
    }

    async fn pause(&mut self, backoff: Backoff) {
        self.failures = self.failures.saturating_add(1);
        tokio::time::sleep(backoff.after(self.failures, &mut self.rng)).await;
    }

    /// Returns the object with its type. Items of a list have neither `apiVersion` nor `kind`.
    fn value(&self, mut object: DynamicObject) -> Option<Value> {
        let WatchedType { of, .. } = &self.watched;
        object.metadata.managed_fields = None;
        let mut object = serde_json::to_value(object).ok()?;
        object["apiVersion"] = of.api_version.as_str().into();
        object["kind"] = of.kind.as_str().into();
        Some(object)
    }
}

fn reach(version: &mut String, object: &DynamicObject) {
    if let Some(newer) = &object.metadata.resource_version {
        version.clone_from(newer);
    }
}
