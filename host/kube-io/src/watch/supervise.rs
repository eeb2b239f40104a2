//! Runs one task for each planned watch. Repeats discovery whenever the set of served types may have changed.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::task::{AbortHandle, JoinSet};

use super::{
    adoption_sweep,
    cached_object::{Extract, StoredForm},
    definitions, discovery, fetch_referenced,
    plan::{Scope, Select},
    plan_watches,
    reflector::Collection,
    shared::{Shared, SlotSink},
    slot::Handle,
};

/// The waits before repeated discoveries after a change of a CustomResourceDefinition. The operator repeats discovery,
/// because the API server's discovery shows such a change only a little later.
const REDISCOVERY_DELAYS: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(3), Duration::from_secs(10), Duration::from_secs(30)];

/// If only optional types are missing, the interval of discovery is this many times as long.
const OPTIONAL_POLL_FACTOR: u32 = 10;

/// Runs all tasks until the future is dropped.
pub(super) async fn run(shared: &Arc<Shared>) {
    let definitions = async {
        // CustomResourceDefinitions are cluster-scoped, and an operator for listed namespaces sends no request for
        // cluster-scoped objects.
        if shared.options.scope == Scope::All {
            definitions::watch(Arc::clone(shared)).await;
        }
    };
    tokio::join!(watches(shared), discover(shared), definitions);
}

async fn watches(shared: &Arc<Shared>) {
    let mut tasks = JoinSet::new();
    let mut running: BTreeMap<u64, AbortHandle> = BTreeMap::new();
    let mut panics: BTreeMap<u64, u32> = BTreeMap::new();
    let mut rng = shared.rng("panics");
    loop {
        let wanted: BTreeMap<u64, Handle> =
            shared.with(plan_watches::plan).into_iter().map(|handle| (handle.id, handle)).collect();
        running.retain(|id, task| {
            let keep = wanted.contains_key(id);
            if !keep {
                task.abort();
            }
            keep
        });
        panics.retain(|id, _| wanted.contains_key(id));
        for (id, handle) in wanted {
            running.entry(id).or_insert_with(|| {
                // After a panic, wait before the restart: the watch may panic again at once, and each start lists
                // everything.
                let pause = panics.get(&id).map(|panics| shared.options.backoff.after(*panics, &mut rng));
                tasks.spawn(watch_after(pause, Arc::clone(shared), handle))
            });
        }
        tokio::select! {
            biased;
            () = shared.plan.notified() => {}
            Some(ended) = tasks.join_next_with_id() => {
                // A task ends only through an abort or a panic. A panic of one watch must not affect the other watches.
                let (id, panicked) = match ended {
                    Ok((id, ())) => (id, false),
                    Err(error) => (error.id(), error.is_panic()),
                };
                running.retain(|watch, task| {
                    let ended = task.id() == id;
                    if ended && panicked {
                        *panics.entry(*watch).or_default() += 1;
                    }
                    !ended
                });
            }
        }
    }
}

async fn watch_after(pause: Option<Duration>, shared: Arc<Shared>, handle: Handle) {
    if let Some(pause) = pause {
        tokio::time::sleep(pause).await;
    }
    watch(shared, handle).await;
}

async fn watch(shared: Arc<Shared>, handle: Handle) {
    let spec = &handle.spec;
    let collection = Collection {
        of: spec.of.clone(),
        path: handle.served.path(spec.namespace.as_deref()),
        labels: spec.labels(),
        fields: spec.fields(),
        by_metadata: spec.is_partial(),
        extract: Extract {
            form: if spec.by_metadata() { StoredForm::Bare } else { StoredForm::Whole },
            ..handle.extract
        },
        dictionary: Arc::clone(&handle.dictionary),
    };
    let sink = SlotSink { shared: Arc::clone(&shared), handle: handle.clone() };
    let reflector = shared.reflector(collection, sink);
    tokio::join!(reflector.run(), requests(&shared, &handle));
}

/// Sends the other requests of a watch, besides lists and watches: reads of needed objects, or the sweep of a type.
async fn requests(shared: &Shared, handle: &Handle) {
    if handle.spec.by_metadata() {
        fetch_referenced::run(shared, handle).await;
    } else if handle.spec.select == Select::Own {
        handle.wake_task.notified().await;
        adoption_sweep::run(shared, handle).await;
    }
}

async fn discover(shared: &Arc<Shared>) {
    let mut rng = shared.rng("discovery");
    let mut failures = 0;
    let mut again = [].iter();
    let mut everything = true;
    loop {
        let types = shared.with(|state| if everything { state.coverage.types() } else { state.unserved() });
        let (found, failed) = discovery::discover(&shared.client, &types).await;
        for (version, why) in &failed {
            tracing::debug!(version, why, "discovery failed, retrying");
        }
        failures = if failed.is_empty() { 0 } else { failures + 1 };
        shared.tell(|state| plan_watches::discovered(state, found, failed));
        shared.plan.notify_one();
        let (missing, lacking, expected) = shared.with(|state| {
            let missing = state.unserved();
            let lacking = missing.iter().any(|of| !state.coverage.is_optional(of));
            // If the group of a missing type has no CustomResourceDefinition, the type will not appear soon.
            let expected = missing.iter().any(|of| state.definitions.has_group(of.group()));
            (!missing.is_empty(), lacking, expected)
        });
        let polled = !shared.definitions_watched.load(Ordering::Relaxed);
        let soon = again.next().filter(|_| failures == 0 && (expected || (missing && polled)));
        let wait = match soon {
            Some(soon) => *soon,
            None if failures > 0 => shared.options.backoff.after(failures, &mut rng),
            None if lacking && polled => shared.options.poll,
            None if missing && polled => shared.options.poll * OPTIONAL_POLL_FACTOR,
            None => shared.options.relist,
        };
        // A poll, or a retry after a failure, asks only for the missing types. After a change of a
        // CustomResourceDefinition, and when a full discovery is due, discovery asks for all types.
        everything = soon.is_some() || (failures == 0 && !(missing && polled));
        tokio::select! {
            biased;
            () = tokio::time::sleep(wait) => {}
            () = shared.rediscover.notified() => (again, everything) = (REDISCOVERY_DELAYS.iter(), true),
        }
    }
}
