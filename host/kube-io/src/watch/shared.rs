//! The state that all tasks of the watch share, and the receiver of the events of one watch.

use std::{
    hash::Hash,
    sync::{Arc, Mutex, atomic::AtomicBool},
};

use fastrand::Rng;
use kube::Client;
use tokio::sync::Notify;

use super::{
    Wake, WatchOptions, apply_event,
    cached_object::Arrived,
    denied,
    event::Event,
    reflector::{Collection, Pace, Reflector, Sink},
    report,
    slot::Handle,
    state::State,
    watch_error::WatchError,
};
use crate::{hashing::hash, locking::lock, metrics::IoMetrics, object_key::Wakes};

pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) options: WatchOptions,
    pub(super) metrics: Arc<dyn IoMetrics>,
    pub(super) wake: Box<Wake>,
    state: Mutex<State>,
    /// Notified when the set of watches may have to change.
    pub(super) plan: Notify,
    /// Notified when the set of served types may have changed.
    pub(super) rediscover: Notify,
    /// Whether the operator watches CustomResourceDefinitions. If so, discovery need not poll for missing types.
    pub(super) definitions_watched: AtomicBool,
    /// Whether the API server has answered the first list of the CustomResourceDefinitions, or has refused it.
    pub(super) definitions_answered: AtomicBool,
}

impl Shared {
    pub(super) fn new(client: Client, options: WatchOptions, metrics: Arc<dyn IoMetrics>, wake: Box<Wake>) -> Self {
        let state = State {
            scope: options.scope.clone(),
            secrets: options.secrets,
            most_named: options.most_named,
            allowance: options.allowance,
            home: options.home.clone(),
            ..State::default()
        };
        Self {
            client,
            options,
            metrics,
            wake,
            state: Mutex::new(state),
            plan: Notify::new(),
            rediscover: Notify::new(),
            definitions_watched: AtomicBool::new(false),
            definitions_answered: AtomicBool::new(false),
        }
    }

    /// Reads or changes the state.
    pub(super) fn with<T>(&self, ask: impl FnOnce(&mut State) -> T) -> T {
        ask(&mut lock(&self.state))
    }

    /// Changes the state, releases the lock, and then wakes the returned objects.
    pub(super) fn tell(&self, change: impl FnOnce(&mut State) -> Wakes) {
        let change = |state: &mut State| {
            let wakes = change(state);
            state.wake_log.add(&wakes);
            wakes
        };
        for (key, urgency) in self.with(change) {
            (self.wake)(key, urgency);
        }
    }

    /// Creates a random generator for one task. Each task has its own generator, so that its random numbers do not
    /// depend on the order in which tasks run.
    pub(super) fn rng(&self, task: impl Hash) -> Rng {
        Rng::with_seed(hash((self.options.seed, task)))
    }

    pub(super) fn reflector<S: Sink>(&self, collection: Collection, sink: S) -> Reflector<S> {
        let options = &self.options;
        let rng = self.rng((&collection.path, &collection.labels, &collection.fields));
        let (watch, relist, backoff) = (options.watch, options.relist, options.backoff);
        let pace = Pace { watch, relist, backoff, page: options.page_size() };
        let rights = self.with(|state| state.rights.subscribe());
        Reflector::new(self.client.clone(), collection, sink, pace, options.streaming_lists, (rng, rights))
    }
}

/// Applies the events of one watch to the state.
pub(super) struct SlotSink {
    pub(super) shared: Arc<Shared>,
    pub(super) handle: Handle,
}

impl Sink for SlotSink {
    fn relist(&self, listed: Vec<Arrived>, version: u64) {
        let handle = &self.handle;
        self.shared
            .tell(|state| denied::let_in(state, handle, |state| apply_event::relist(state, handle, listed, version)));
    }

    fn event(&self, event: Event) {
        self.shared.tell(|state| apply_event::event(state, &self.handle, event));
    }

    fn trouble(&self, broken: Option<&WatchError>) {
        let spec = &self.handle.spec;
        if let Some(broken) = broken {
            let is_told = self.shared.with(|state| report::is_told(state, spec));
            if broken.is_denial() && !is_told {
                tracing::warn!(watch = %spec, "{broken}");
            } else {
                tracing::debug!(watch = %spec, %broken, "a watch failed, retrying");
            }
            self.shared.metrics.watch_error(&spec.of, &broken.reason());
            if *broken == WatchError::Unserved {
                self.shared.rediscover.notify_one();
            }
        }
        // An outdated version is not an error, because a new list follows.
        if broken == Some(&WatchError::Gone) {
            return;
        }
        let mut barred = None;
        self.shared.tell(|state| {
            let open = spec.namespace.as_deref().filter(|namespace| !report::is_barred(state, namespace));
            let set = |state: &mut State| apply_event::set_trouble(state, &self.handle, broken);
            // Only a watch that works proves that rights have returned.
            let wakes = if broken.is_none() { denied::let_in(state, &self.handle, set) } else { set(state) };
            barred = open.filter(|namespace| report::is_barred(state, namespace));
            wakes
        });
        if let Some(namespace) = barred {
            tracing::warn!(
                namespace,
                "the operator can read nothing in this namespace: the namespace is gone, or rights are missing; the \
                 operator retries, and continues with the namespaces that it can read"
            );
        }
    }

    fn reached(&self) -> u64 {
        self.shared.with(|state| state.slots.get(&*self.handle.spec).map_or(0, |slot| slot.cache.reached()))
    }

    fn knows(&self, namespace: &str, name: &str, version: u64) -> bool {
        self.shared.with(|state| apply_event::knows(state, &self.handle, namespace, name, version))
    }

    fn malformed(&self, what: &str) {
        let of = &self.handle.spec.of;
        tracing::warn!(kind = %of, "ignored an object that the API server sent: {what}");
        self.shared.metrics.watch_error(of, "malformed");
    }
}
