//! The requests other than watches: reads of needed objects, and one sweep for each type. The sweep finds children
//! without our label, which an earlier operator made.

use std::{collections::BTreeMap, sync::Arc};

use kaos_objects::metadata;
use kube::{
    api::{GetParams, ListParams},
    core::Request,
};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    broken::{Broken, in_time},
    facts::{Answer, secret_facts},
    item::{Arrived, version_of},
    plan::Select,
    shared::Shared,
    shelf::PATIENCE,
    slot::Handle,
};

/// Runs the requests of one watch until the future is dropped.
pub(super) async fn run(shared: Arc<Shared>, handle: Handle) {
    if handle.spec.by_metadata() {
        read_needed(&shared, &handle).await;
    } else if handle.spec.select == Select::Own {
        handle.errand.notified().await;
        sweep(&shared, &handle).await;
    }
    std::future::pending::<()>().await;
}

/// A failed read.
struct Failed {
    /// The last version that was seen.
    seen: u64,
    /// Number of failures in a row.
    times: u32,
    /// Since when the API server has been refusing the read.
    refused: Option<Instant>,
    /// The time of the retry.
    due: Instant,
}

/// Reads needed objects. Each failed read has its own backoff, and other reads do not wait for it.
async fn read_needed(shared: &Shared, handle: &Handle) {
    let mut rng = shared.rng(("read", &*handle.spec));
    let mut failed: BTreeMap<Arc<str>, Failed> = BTreeMap::new();
    let mut rights = shared.with(|state| state.rights.subscribe());
    loop {
        let is_refused = failed.values().any(|failed| failed.refused.is_some());
        tokio::select! {
            biased;
            () = handle.errand.notified() => {}
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
            shared.with(|state| state.read_again(handle, &again));
        }
        while let Some((name, version)) = next(shared, handle) {
            if let Some(failed) = failed.get_mut(&name) {
                // Still backing off; changes do not shorten it. Version 0 means newly needed.
                failed.seen = if version == 0 { 0 } else { version.max(failed.seen) };
                continue;
            }
            let before = tried.remove(&name);
            let Err(broken) = read(shared, handle, &name, version).await else { continue };
            shared.metrics.watch_error(&handle.spec.of, &broken.reason());
            let since = || before.as_ref().and_then(|failed| failed.refused).unwrap_or_else(Instant::now);
            let refused = matches!(broken, Broken::Forbidden(_)).then(since);
            if let Broken::Forbidden(why) | Broken::Unauthenticated(why) = &broken {
                let lasts = refused.is_some_and(|since| since.elapsed() >= PATIENCE);
                shared.tell(|state| state.unreadable(handle, &name, why, lasts));
            }
            let times = before.map_or(0, |failed| failed.times).saturating_add(1);
            let due = Instant::now() + shared.options.backoff.after(times, &mut rng);
            failed.insert(name, Failed { seen: version, times, refused, due });
        }
    }
}

/// Waits until this time, or forever without one.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

fn next(shared: &Shared, handle: &Handle) -> Option<(Arc<str>, u64)> {
    shared.with(|state| state.next_to_read(handle))
}

/// Reads an object that was seen at a version. An older answer counts for now, and the object is read again.
async fn read(shared: &Shared, handle: &Handle, name: &Arc<str>, seen: u64) -> Result<(), Broken> {
    let as_seen = |version: u64| {
        if version < seen { Err(Broken::odd("what was read is older than what was seen")) } else { Ok(()) }
    };
    let spec = &handle.spec;
    let path = handle.served.path(spec.namespace.as_deref());
    let request = Request::new(path).get(name, &GetParams::default()).map_err(kube::Error::BuildRequest)?;
    let object = match in_time(shared.client.request::<Value>(request)).await {
        Ok(object) => object,
        Err(Broken::Unserved) => {
            shared.tell(|state| state.fetched(handle, name, 0, Answer::Absent));
            return as_seen(0);
        }
        Err(broken) => return Err(broken),
    };
    let answer = if spec.of.is_secret() {
        let version = version_of(object["metadata"].get("resourceVersion"));
        version.map(|version| (version, Answer::Secret(secret_facts(&object, &shared.options.digest_key))))
    } else {
        let arrived = Arrived::new(object, &spec.of, handle.extract).ok();
        arrived.map(|arrived| (arrived.item.version, Answer::Object(arrived.item)))
    };
    let (version, answer) = answer.ok_or_else(|| Broken::odd("the object carries no resourceVersion"))?;
    shared.tell(|state| state.fetched(handle, name, version, answer));
    as_seen(version)
}

#[derive(Deserialize)]
struct Metadata {
    metadata: Meta,
    /// The API server writes null for an empty list.
    #[serde(default)]
    items: Option<Vec<Value>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Meta {
    r#continue: String,
}

async fn sweep(shared: &Shared, handle: &Handle) {
    let mut rng = shared.rng(("sweep", &*handle.spec));
    let mut failures = 0;
    while let Err(broken) = sweep_once(shared, handle).await {
        if broken == Broken::Unserved {
            return;
        }
        failures += 1;
        shared.metrics.watch_error(&handle.spec.of, &broken.reason());
        tokio::time::sleep(shared.options.backoff.after(failures, &mut rng)).await;
    }
}

async fn sweep_once(shared: &Shared, handle: &Handle) -> Result<(), Broken> {
    let path = handle.served.path(handle.spec.namespace.as_deref());
    let mut next = None;
    loop {
        let params = ListParams {
            label_selector: Some(format!("{}!={}", metadata::MANAGED_BY, metadata::MANAGER)),
            limit: Some(shared.options.page),
            continue_token: next,
            ..ListParams::default()
        };
        let request = Request::new(&path).list_metadata(&params).map_err(kube::Error::BuildRequest)?;
        let page: Metadata = in_time(shared.client.request(request)).await?;
        for object in page.items.iter().flatten() {
            shared.tell(|state| state.swept(handle, object));
        }
        if page.metadata.r#continue.is_empty() {
            return Ok(());
        }
        next = Some(page.metadata.r#continue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_metadata_may_be_written_in_three_ways() {
        for items in [r#", "items": []"#, r#", "items": null"#, ""] {
            let page: Metadata =
                serde_json::from_str(&format!(r#"{{"metadata": {{"resourceVersion": "7"}}{items}}}"#)).unwrap();
            assert_eq!(page.items.iter().flatten().count(), 0);
        }
    }
}
