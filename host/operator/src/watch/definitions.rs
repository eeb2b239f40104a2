//! Watches the metadata of custom resource definitions, to know when types come and go. It is not said what they are; that
//! is asked of discovery, which lags behind them a little.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering},
};

use kaos_policy::contract::ResourceType;

use super::{
    broken::Broken,
    intake::Event,
    item::{Arrived, Extract},
    reflector::{Collection, Sink},
    shared::Shared,
};

/// Watches them until the future is dropped.
pub(super) async fn watch(shared: Arc<Shared>) {
    let collection = Collection {
        of: ResourceType::new("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned(),
        labels: None,
        fields: None,
        by_metadata: true,
        extract: Extract::default(),
    };
    let sink = Definitions { shared: Arc::clone(&shared), known: Mutex::default() };
    shared.reflector(collection, sink).run().await;
}

struct Definitions {
    shared: Arc<Shared>,
    /// Versions by name, and how far the watch is.
    known: Mutex<(BTreeMap<Arc<str>, u64>, u64)>,
}

impl Definitions {
    /// Whether it is of a group that matters. A definition's name is its plural and its group.
    fn matters(&self, name: &str) -> bool {
        let group = name.split_once('.').map_or("", |(_, group)| group);
        self.shared.with(|state| state.coverage.types().iter().any(|of| of.group() == group))
    }

    fn change<T>(&self, change: impl FnOnce(&mut BTreeMap<Arc<str>, u64>, &mut u64) -> T) -> T {
        let (known, reached) = &mut *self.known.lock().unwrap_or_else(PoisonError::into_inner);
        change(known, reached)
    }
}

impl Sink for Definitions {
    fn relist(&self, listed: Vec<Arrived>, version: u64) {
        self.shared.definitions_watched.store(true, Ordering::Relaxed);
        let matter = listed.into_iter().filter(|arrived| self.matters(&arrived.name));
        let now: BTreeMap<_, _> = matter.map(|arrived| (arrived.name, arrived.item.version)).collect();
        let changed = self.change(|known, reached| {
            *reached = version;
            std::mem::replace(known, now.clone()) != now
        });
        if changed {
            self.shared.rediscover.notify_one();
        }
    }

    fn event(&self, event: Event) {
        let (Event::Is(arrived) | Event::Gone(arrived)) = &event else {
            if let Event::Bookmark(version) = event {
                self.change(|_, reached| *reached = version.max(*reached));
            }
            return;
        };
        let version = arrived.item.version;
        let matters = self.matters(&arrived.name);
        let changed = self.change(|known, reached| {
            if version <= *reached {
                return false;
            }
            *reached = version;
            match event {
                Event::Gone(_) => known.remove(&arrived.name).is_some(),
                _ => matters && known.insert(Arc::clone(&arrived.name), version) != Some(version),
            }
        });
        if changed {
            self.shared.rediscover.notify_one();
        }
    }

    fn trouble(&self, broken: Option<&Broken>) {
        if let Some(broken) = broken {
            tracing::debug!(%broken, "definitions are not watched; what is served is asked now and then");
        }
        if matches!(broken, Some(Broken::Forbidden(_) | Broken::Unserved)) {
            let watched = self.shared.definitions_watched.swap(false, Ordering::Relaxed);
            if watched {
                self.shared.rediscover.notify_one();
            }
        }
    }

    fn reached(&self) -> u64 {
        self.change(|_, reached| *reached)
    }

    fn malformed(&self, what: &str) {
        tracing::warn!("a custom resource definition cannot be used: {what}");
    }
}
