//! Reads the needed objects of a watch one by one if the watch covers only metadata.

use std::{collections::BTreeMap, sync::Arc};

use kube::{api::GetParams, core::Request};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    apply_event,
    cache::REFUSAL_GRACE,
    cached_object::{Arrived, version_of},
    fetched_objects::Fetched,
    secret_metadata::secret_facts,
    shared::Shared,
    slot::Handle,
    watch_error::{WatchError, in_time},
};

/// A read that failed.
struct Failed {
    /// The last version that the watch reported.
    seen: u64,
    /// Number of failures of this read in a row.
    times: u32,
    /// The time since which the API server has refused the read.
    refused: Option<Instant>,
    /// The time of the retry.
    due: Instant,
}

/// Reads needed objects until the future is dropped. Each failed read has its own backoff. Other reads do not wait for
/// this backoff.
pub(super) async fn run(shared: &Shared, handle: &Handle) {
    let mut rng = shared.rng(("read", &*handle.spec));
    let mut failed: BTreeMap<Arc<str>, Failed> = BTreeMap::new();
    let mut rights = shared.with(|state| state.rights.subscribe());
    loop {
        let is_refused = failed.values().any(|failed| failed.refused.is_some());
        tokio::select! {
            biased;
            () = handle.wake_task.notified() => {}
            _ = rights.changed(), if is_refused => {
                let refused = failed.values_mut().filter(|failed| failed.refused.is_some());
                refused.for_each(|failed| failed.due = Instant::now());
            }
            () = until(failed.values().map(|failed| failed.due).min()) => {}
        }
        let now = Instant::now();
        let mut tried: BTreeMap<_, _> = failed.extract_if(.., |_, failed| failed.due <= now).collect();
        if !tried.is_empty() {
            let again: Vec<_> = tried.iter().map(|(name, failed)| (Arc::clone(name), failed.seen)).collect();
            shared.with(|state| apply_event::read_again(state, handle, &again));
        }
        while let Some((name, version)) = next(shared, handle) {
            if let Some(failed) = failed.get_mut(&name) {
                // Wait for the end of the delay after the failed read: changes of the object do not shorten this delay.
                // Version 0 means that another object began to need this object after the failed read.
                failed.seen = if version == 0 { 0 } else { version.max(failed.seen) };
                continue;
            }
            let before = tried.remove(&name);
            let Err(broken) = read(shared, handle, &name, version).await else { continue };
            shared.metrics.watch_error(&handle.spec.of, &broken.reason());
            let since = || before.as_ref().and_then(|failed| failed.refused).unwrap_or_else(Instant::now);
            let refused = matches!(broken, WatchError::Forbidden(_)).then(since);
            if let WatchError::Forbidden(why) | WatchError::Unauthenticated(why) = &broken {
                let lasts = refused.is_some_and(|since| since.elapsed() >= REFUSAL_GRACE);
                shared.tell(|state| apply_event::unreadable(state, handle, &name, why, lasts));
            }
            let times = before.map_or(0, |failed| failed.times).saturating_add(1);
            let due = Instant::now() + shared.options.backoff.after(times, &mut rng);
            failed.insert(name, Failed { seen: version, times, refused, due });
        }
    }
}

/// Waits until this time. If `time` is `None`, waits forever.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

fn next(shared: &Shared, handle: &Handle) -> Option<(Arc<str>, u64)> {
    shared.with(|state| apply_event::next_to_read(state, handle))
}

/// Reads an object that the watch reported at a version. If the read returns an older version, stores this version, and
/// returns an error so that the caller reads the object again.
async fn read(shared: &Shared, handle: &Handle, name: &Arc<str>, seen: u64) -> Result<(), WatchError> {
    let as_seen = |version: u64| {
        if version < seen {
            Err(WatchError::odd("the object that was read is older than the version that the watch reported"))
        } else {
            Ok(())
        }
    };
    let spec = &handle.spec;
    let path = handle.served.path(spec.namespace.as_deref());
    let request = Request::new(path).get(name, &GetParams::default()).map_err(kube::Error::BuildRequest)?;
    let object = match in_time(shared.client.request::<Value>(request)).await {
        Ok(object) => object,
        Err(WatchError::Unserved) => {
            shared.tell(|state| apply_event::fetched(state, handle, name, 0, &Fetched::Absent));
            return as_seen(0);
        }
        Err(broken) => return Err(broken),
    };
    let answer = if spec.of.is_secret() {
        let version = version_of(object["metadata"].get("resourceVersion"));
        version.map(|version| (version, Fetched::Secret(secret_facts(&object, &shared.options.digest_key))))
    } else {
        let arrived = Arrived::new(object, &spec.of, handle.extract).ok();
        arrived.map(|arrived| {
            let item = arrived.packed(&handle.dictionary).item;
            (item.version, Fetched::Object(item))
        })
    };
    let (version, answer) = answer.ok_or_else(|| WatchError::odd("the object has no resourceVersion"))?;
    shared.tell(|state| apply_event::fetched(state, handle, name, version, &answer));
    as_seen(version)
}
