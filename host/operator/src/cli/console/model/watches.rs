//! The watches of a console. Each watch keeps the objects of a type in memory, with the rights of the user.

use std::{collections::BTreeSet, pin::pin, sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use kaos_policy::stamp::{MANAGED_BY, MANAGER};
use kube::{
    Api,
    api::DynamicObject,
    runtime::watcher::{self, Event, watcher},
};
use serde_json::Value;

use super::{
    state::Model,
    watched_type::{Role, WatchedType},
};
use crate::error_text::{watch_status, with_causes};

/// The delay after an error of a watch.
const PAUSE: Duration = Duration::from_secs(2);
/// The delay after the API server refused a watch. An administrator may grant the right meanwhile.
const REFUSED: Duration = Duration::from_secs(30);

/// Follows a watch for as long as the process runs.
pub(super) async fn follow(model: Arc<Model>, watched: WatchedType) {
    let WatchedType { served, place, role, .. } = &watched;
    let api: Api<DynamicObject> = match place.as_ref().filter(|_| served.namespaced) {
        Some(namespace) => Api::namespaced_with(model.client.clone(), namespace, &served.resource),
        None => Api::all_with(model.client.clone(), &served.resource),
    };
    let labels = format!("{MANAGED_BY}={MANAGER}");
    let config = match role {
        Role::Child => watcher::Config::default().labels(&labels),
        Role::Claimed | Role::Record => watcher::Config::default(),
    };
    let mut events = pin!(watcher(api, config));
    let mut listed = BTreeSet::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(object)) => {
                listed.extend(value(&watched, object).map(|object| model.put(object)));
            }
            Ok(Event::InitDone) => model.listed(&watched, &listed),
            Ok(Event::Apply(object)) => {
                if let Some(object) = value(&watched, object) {
                    model.put(object);
                }
            }
            Ok(Event::Delete(object)) => {
                if let Some(object) = value(&watched, object) {
                    model.remove(&object);
                }
            }
            Err(error) => {
                let is_refused = watch_status(&error) == Some(403);
                model.failed(&watched, is_refused, with_causes(&error));
                tokio::time::sleep(if is_refused { REFUSED } else { PAUSE }).await;
            }
        }
    }
}

/// Returns the object with its type. Items of a list have neither `apiVersion` nor `kind`.
fn value(WatchedType { of, .. }: &WatchedType, mut object: DynamicObject) -> Option<Value> {
    object.metadata.managed_fields = None;
    let mut object = serde_json::to_value(object).ok()?;
    object["apiVersion"] = of.api_version.as_str().into();
    object["kind"] = of.kind.as_str().into();
    Some(object)
}
