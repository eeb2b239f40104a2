//! Watches the metadata of CustomResourceDefinitions, to notice when types appear, change or disappear. Discovery shows
//! the details of a type a little after its CustomResourceDefinition changes.

use std::sync::{Arc, atomic::Ordering};

use kaos_objects::ResourceType;

use super::{
    cached_object::{Arrived, Extract},
    event::Event,
    known::{Definition, group_of},
    reflector::{Collection, Sink},
    shared::Shared,
    state::State,
    watch_error::WatchError,
};
use crate::{object_key::Wakes, queue::Urgency};

/// Watches the CustomResourceDefinitions until the caller drops the future.
pub(super) async fn watch(shared: Arc<Shared>) {
    let collection = Collection {
        of: ResourceType::new("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned(),
        labels: None,
        fields: None,
        by_metadata: true,
        extract: Extract::default(),
        dictionary: Arc::default(),
    };
    let sink = Definitions { shared: Arc::clone(&shared) };
    shared.reflector(collection, sink).run().await;
}

/// Returns a number that changes when the CustomResourceDefinition of a type changes. Returns 0 if the watch knows no
/// CustomResourceDefinition of this type.
pub(super) fn definition(state: &State, of: &ResourceType) -> u64 {
    let Some(Some(served)) = state.served.get(of) else { return 0 };
    let name = format!("{}.{}", served.resource.plural, served.resource.group);
    state.definitions.by_name.get(&*name).map_or(0, |definition| definition.content)
}

/// Returns all objects of the type that a CustomResourceDefinition defines. The watch wakes these objects after a
/// change of the CustomResourceDefinition, because the changed schema may accept other fields in their status.
fn defined_by(state: &State, name: &str) -> Wakes {
    let is_it = |of: &&ResourceType| {
        state
            .served
            .get(*of)
            .and_then(Option::as_ref)
            .is_some_and(|served| name.split_once('.') == Some((&*served.resource.plural, &*served.resource.group)))
    };
    let types = state.coverage.primaries().map(|(of, _)| of).filter(is_it);
    types.flat_map(|of| state.keys(of)).map(|key| (key, Urgency::Bulk)).collect()
}

/// Returns whether a CustomResourceDefinition belongs to the group of a covered type.
fn matters(state: &State, name: &str) -> bool {
    state.coverage.types().iter().any(|of| of.group() == group_of(name))
}

struct Definitions {
    shared: Arc<Shared>,
}

impl Definitions {
    /// Applies a change of a CustomResourceDefinition, and wakes the objects that the change concerns. Triggers
    /// discovery if the set of served types may differ now.
    fn change(&self, change: impl FnOnce(&mut State) -> (bool, Wakes)) {
        let mut matters = false;
        self.shared.tell(|state| {
            let (changed, wakes) = change(state);
            state.changes += u64::from(changed);
            matters = changed;
            wakes
        });
        if matters {
            self.shared.rediscover.notify_one();
        }
    }
}

impl Sink for Definitions {
    fn relist(&self, listed: Vec<Arrived>, version: u64) {
        self.shared.definitions_watched.store(true, Ordering::Relaxed);
        self.change(|state| {
            let now = listed.iter().map(|arrived| (Arc::clone(&arrived.name), Definition::of(&arrived.item))).collect();
            state.definitions.reached = version;
            let before = std::mem::replace(&mut state.definitions.by_name, now);
            let names = before.keys().chain(state.definitions.by_name.keys());
            let differs = |name: &&Arc<str>| before.get(*name) != state.definitions.by_name.get(*name);
            let changed: Vec<&Arc<str>> = names.filter(differs).filter(|name| matters(state, name)).collect();
            let content = |name: &Arc<str>| state.definitions.by_name.get(name).map(|definition| definition.content);
            let other = |name: &&&Arc<str>| before.get(**name).is_some_and(|was| Some(was.content) != content(name));
            let wakes = changed.iter().filter(other).flat_map(|name| defined_by(state, name)).collect();
            (!changed.is_empty(), wakes)
        });
        self.shared.definitions_answered.store(true, Ordering::Release);
    }

    fn event(&self, event: Event) {
        self.change(|state| {
            let (Event::Is(arrived) | Event::Gone(arrived)) = &event else {
                if let Event::Bookmark(version) = event {
                    state.definitions.reached = version.max(state.definitions.reached);
                }
                return (false, Wakes::new());
            };
            if arrived.item.version <= state.definitions.reached {
                return (false, Wakes::new());
            }
            state.definitions.reached = arrived.item.version;
            let matters = matters(state, &arrived.name);
            if matches!(event, Event::Gone(_)) {
                return (state.definitions.by_name.remove(&arrived.name).is_some() && matters, Wakes::new());
            }
            let now = Definition::of(&arrived.item);
            let before = state.definitions.by_name.insert(Arc::clone(&arrived.name), now);
            let other = matters && before.is_some_and(|before| before.content != now.content);
            (matters, if other { defined_by(state, &arrived.name) } else { Wakes::new() })
        });
    }

    fn trouble(&self, broken: Option<&WatchError>) {
        if let Some(broken) = broken {
            tracing::debug!(%broken, "could not watch CustomResourceDefinitions, polling discovery instead");
        }
        if broken.is_some_and(|broken| broken.is_denial() || *broken == WatchError::Unserved) {
            let watched = self.shared.definitions_watched.swap(false, Ordering::Relaxed);
            self.shared.definitions_answered.store(true, Ordering::Release);
            if watched {
                self.shared.rediscover.notify_one();
            }
        }
    }

    fn reached(&self) -> u64 {
        self.shared.with(|state| state.definitions.reached)
    }

    fn knows(&self, _: &str, _: &str, _: u64) -> bool {
        false
    }

    fn malformed(&self, what: &str) {
        tracing::warn!("ignored a CustomResourceDefinition: {what}");
    }
}
