//! Unpacks packages, once for each version of their ConfigMaps.
//!
//! For the operator's namespace, the watch stores whole ConfigMaps. For other namespaces, the watch stores only
//! metadata, and the reader reads a package after its metadata changed. In each round, the reader reads only one
//! package of each of these namespaces, and at most as many bytes as a package may have. So a tenant cannot take much
//! memory or delay other tenants for long.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kaos_crds::PolicySource;
use kaos_policy::digest::Digest;
use kube::{
    Api, Client,
    api::{GetParams, PartialObjectMeta},
    core::ObjectMeta,
};
use serde_json::json;
use tokio::time::Instant;

use super::held::{Held, NoPackage};
use crate::{
    catalogue::installed::{StepError, pace::BACKOFF},
    package::{self, Package},
};

/// The maximum number of packages that are being read at the same time. The maximum limits the memory that the reader
/// takes.
const AT_A_TIME: usize = 8;

/// ConfigMaps with the label of packages, by namespace and name.
pub(super) type Labelled = BTreeMap<PolicySource, Seen>;

/// A ConfigMap, as the watch stores it.
pub(super) enum Seen {
    Whole(Arc<ConfigMap>),
    Metadata(Arc<PartialObjectMeta<ConfigMap>>),
}

/// The content of each package at its last read.
pub(super) struct Reader {
    client: Client,
    rounds: u64,
    unpacked: BTreeMap<PolicySource, Unpacked>,
    failed: BTreeMap<PolicySource, Failed>,
    /// Whether some changed packages were not read in this round, and wait for the next turn of their namespace.
    is_behind: bool,
}

struct Unpacked {
    /// The versions of the package's ConfigMap and chunks that were read. `None` for a chunk that did not exist.
    versions: Vec<(PolicySource, Option<String>)>,
    round: u64,
    held: Held,
}

/// A package that could not be read.
struct Failed {
    /// The time of the next attempt.
    due: Instant,
    /// The number of failures in a row.
    times: u32,
}

impl Seen {
    pub(super) fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Whole(config_map) => &config_map.metadata,
            Self::Metadata(config_map) => &config_map.metadata,
        }
    }

    fn version(&self) -> String {
        let metadata = self.metadata();
        format!("{:?}/{:?}", metadata.uid, metadata.resource_version)
    }
}

impl Reader {
    pub(super) fn new(client: Client) -> Self {
        let (unpacked, failed) = (BTreeMap::new(), BTreeMap::new());
        Self { client, rounds: 0, unpacked, failed, is_behind: false }
    }

    /// Returns the result of the last read of this source, or `None` if the operator has not read the source.
    pub(super) fn held(&self, source: &PolicySource) -> Option<Held> {
        self.unpacked.get(source).map(|unpacked| unpacked.held.clone())
    }

    /// Returns the delay after which the operator reads packages again even if nothing changes.
    pub(super) fn again(&self) -> Option<Duration> {
        if self.is_behind {
            return Some(Duration::ZERO);
        }
        let due = self.failed.values().map(|failed| failed.due).min();
        due.map(|due| due.saturating_duration_since(Instant::now()))
    }

    /// Starts a round: unpacks the changed packages among `sources`, and forgets all packages that are not in
    /// `sources`.
    pub(super) async fn read(&mut self, sources: &[&PolicySource], labelled: &Labelled) {
        let all: BTreeSet<&PolicySource> = sources.iter().copied().collect();
        self.unpacked.retain(|source, _| all.contains(source));
        self.failed.retain(|source, _| all.contains(source));
        self.rounds += 1;
        let turn = self.turn(sources, labelled);
        for some in turn.chunks(AT_A_TIME) {
            let reading: Vec<_> = some.iter().map(|source| self.unpack(source, labelled)).collect();
            let read = join_all(reading).await;
            for (source, read) in some.iter().zip(read) {
                self.note(source, read);
            }
        }
    }

    /// Returns the packages to unpack in this round: all changed packages of the operator's namespace, and one changed
    /// package of every other namespace. If a namespace has several changed packages, the reader takes the package that
    /// it read longest ago.
    fn turn<'a>(&mut self, sources: &[&'a PolicySource], labelled: &Labelled) -> Vec<&'a PolicySource> {
        let now = Instant::now();
        let mut stale: Vec<&'a PolicySource> =
            sources.iter().copied().filter(|source| self.is_stale(source, labelled, now)).collect();
        stale.sort_by_key(|source| self.unpacked.get(*source).map(|unpacked| unpacked.round));
        let all = stale.len();
        let mut had: BTreeSet<&'a str> = BTreeSet::new();
        stale.retain(|&source| {
            matches!(labelled.get(source), Some(Seen::Whole(_))) || had.insert(source.namespace.as_str())
        });
        self.is_behind = stale.len() < all;
        stale
    }

    fn is_stale(&self, source: &PolicySource, labelled: &Labelled, now: Instant) -> bool {
        match (self.failed.get(source), self.unpacked.get(source)) {
            (Some(failed), _) => failed.due <= now,
            (None, None) => true,
            (None, Some(unpacked)) => {
                unpacked.versions.iter().any(|(at, version)| labelled.get(at).map(Seen::version) != *version)
            }
        }
    }

    /// Unpacks a package. Returns `None` if the package was deleted. The watch will report the deletion.
    async fn unpack(&self, source: &PolicySource, labelled: &Labelled) -> kube::Result<Option<Unpacked>> {
        let Some(index) = self.get(source, labelled).await? else { return Ok(None) };
        let chunk = |name: String| async move { self.get(&beside(source, name), labelled).await };
        let package = package::unpack_reading(&index, chunk).await?;
        let digest = package.as_ref().map_or_else(|_| raw(&index), Package::digest);
        let held = Held { digest, package: package.map(Arc::new).map_err(NoPackage::Wrong) };
        let chunks = package::chunk_names(&index).unwrap_or_default().into_iter().map(|name| beside(source, name));
        let all = std::iter::once(source.clone()).chain(chunks);
        let seen = |at: PolicySource| {
            let version = labelled.get(&at).map(Seen::version);
            (at, version)
        };
        Ok(Some(Unpacked { versions: all.map(seen).collect(), round: self.rounds, held }))
    }

    /// Returns a ConfigMap in the version that the watch reported, or in a newer version. Returns `None` if the watch
    /// did not report the ConfigMap, or if the ConfigMap was deleted.
    async fn get(&self, at: &PolicySource, labelled: &Labelled) -> kube::Result<Option<Arc<ConfigMap>>> {
        let seen = match labelled.get(at) {
            None => return Ok(None),
            Some(Seen::Whole(config_map)) => return Ok(Some(Arc::clone(config_map))),
            Some(Seen::Metadata(seen)) => seen,
        };
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &at.namespace);
        let version = GetParams { resource_version: seen.metadata.resource_version.clone() };
        match api.get_with(&at.config_map, &version).await {
            Ok(config_map) => Ok(Some(Arc::new(config_map))),
            Err(kube::Error::Api(answer)) if answer.code == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Stores the result of a read. After an error, keeps the old content, and schedules the next attempt with an
    /// increasing delay.
    fn note(&mut self, source: &PolicySource, read: kube::Result<Option<Unpacked>>) {
        match read {
            Ok(Some(unpacked)) => {
                self.failed.remove(source);
                self.unpacked.insert(source.clone(), unpacked);
                return;
            }
            Ok(None) => {}
            Err(error) => {
                let PolicySource { namespace, config_map } = source;
                let error = StepError::new(format!("read the policy in ConfigMap {namespace}/{config_map}"), &error);
                tracing::warn!(%error, "policy ConfigMap could not be read; its active revision keeps serving");
            }
        }
        let now = Instant::now();
        let failed = self.failed.entry(source.clone()).or_insert(Failed { due: now, times: 0 });
        failed.times = failed.times.saturating_add(1);
        failed.due = now + BACKOFF.full(failed.times);
    }
}

/// Returns the source for the ConfigMap `name` in the namespace of `source`.
fn beside(source: &PolicySource, name: String) -> PolicySource {
    PolicySource { namespace: source.namespace.clone(), config_map: name }
}

/// Returns the digest of a ConfigMap that is not a package.
fn raw(index: &ConfigMap) -> Digest {
    Digest::of_json(&json!([index.data, index.binary_data]))
}
