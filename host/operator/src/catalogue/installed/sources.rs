//! Which packages there are: ConfigMaps with the label, and the ConfigMap of settings that the operator has of old.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures_util::{FutureExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kaos_crds::PolicySource;
use kaos_policy::{digest::Digest, settings::Layer};
use kube::{
    Api, Client, Resource,
    runtime::{WatchStreamExt as _, reflector, reflector::Store, watcher},
};
use serde_json::json;
use tokio::{sync::Notify, task::JoinSet};

use crate::{
    catalogue::{Age, OPERATOR_CONFIG, operator_config},
    package::{self, Package, PackageError},
};

/// A package as it is now.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) source: PolicySource,
    pub(super) age: Age,
    /// The digest of the package; of the bare ConfigMap if it is none.
    pub(super) digest: Digest,
    pub(super) package: Result<Arc<Package>, NoPackage>,
}

/// Why there is no package to check.
#[derive(Debug, Clone)]
pub(super) enum NoPackage {
    /// The ConfigMap does not hold one.
    Wrong(PackageError),
    /// Its namespace has as many that are older as are taken: it was not looked into.
    OneTooMany,
}

/// Packages of a namespace other than the operator's that are taken: what serves is kept beside the operator, where no
/// quota of the namespace counts it. The next one is told so, and what is beyond that is not even looked at.
pub(super) const MOST: usize = 16;

/// Everything that is followed, and that something changed.
pub(super) struct Sources {
    home: String,
    packages: Store<ConfigMap>,
    config: Store<ConfigMap>,
    changed: Arc<Notify>,
    unpacked: BTreeMap<PolicySource, (Vec<String>, Found)>,
    _watches: JoinSet<()>,
}

/// A watch whose objects are kept, until its task is dropped.
pub(super) fn keep<K>(
    api: Api<K>,
    config: watcher::Config,
    of: K::DynamicType,
    changed: &Arc<Notify>,
    watches: &mut JoinSet<()>,
) -> Store<K>
where
    K: Resource + Clone + std::fmt::Debug + Send + Sync + serde::de::DeserializeOwned + 'static,
    K::DynamicType: Eq + std::hash::Hash + Clone + Send + Sync,
{
    let writer = reflector::store::Writer::new(of);
    let store = writer.as_reader();
    let changed = Arc::clone(changed);
    let backoff = watcher::DefaultBackoff::default();
    let events = reflector(writer, watcher(api, config).backoff(backoff));
    watches.spawn(async move {
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            match event {
                // Only the end of a list tells the whole of it.
                Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => {}
                Ok(_) => changed.notify_one(),
                Err(error) => tracing::warn!(%error, "the watch on policies broke, and is opened again"),
            }
        }
    });
    store
}

/// Whether what a watch keeps was listed.
pub(super) fn is_listed<K>(store: &Store<K>) -> bool
where
    K: Resource + Clone + 'static,
    K::DynamicType: Eq + std::hash::Hash + Clone,
{
    store.wait_until_ready().now_or_never().is_some_and(|listed| listed.is_ok())
}

impl Sources {
    /// Packages of a namespace, or of all.
    pub(super) fn follow(client: &Client, namespace: &str, everywhere: bool) -> Self {
        let own: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let labelled = if everywhere { Api::all(client.clone()) } else { own.clone() };
        let (changed, mut watches) = (Arc::new(Notify::new()), JoinSet::new());
        let select = watcher::Config::default().labels(package::LABEL);
        let packages = keep(labelled, select, (), &changed, &mut watches);
        let named = watcher::Config::default().fields(&format!("metadata.name={OPERATOR_CONFIG}"));
        let config = keep(own, named, (), &changed, &mut watches);
        let (home, unpacked) = (namespace.to_owned(), BTreeMap::new());
        Self { home, packages, config, changed, unpacked, _watches: watches }
    }

    /// Whether everything was listed.
    pub(super) fn are_known(&self) -> bool {
        is_listed(&self.packages) && is_listed(&self.config)
    }

    /// Waits for the next change.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The settings of the operator's own ConfigMap.
    pub(super) fn config(&self) -> Option<Layer> {
        self.config.state().first().map(|config| operator_config(config))
    }

    /// All packages, the oldest first.
    pub(super) fn packages(&mut self) -> Vec<Found> {
        let all = self.packages.state();
        let by_name: BTreeMap<(String, String), Arc<ConfigMap>> = all
            .iter()
            .map(|map| ((text(map.metadata.namespace.as_ref()), text(map.metadata.name.as_ref())), Arc::clone(map)))
            .collect();
        let indexes = all.iter().filter(|map| package::is_index(map) && map.metadata.deletion_timestamp.is_none());
        let mut indexes: Vec<(Age, &Arc<ConfigMap>)> = indexes.map(|index| (age_of(index), index)).collect();
        indexes.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut many: BTreeMap<String, usize> = BTreeMap::new();
        let mut known = BTreeSet::new();
        let mut found: Vec<Found> = Vec::new();
        for (age, index) in indexes {
            let count = many.entry(age.namespace.clone()).or_default();
            *count += 1;
            let beyond = if age.namespace == self.home { 0 } else { count.saturating_sub(MOST) };
            let package = match beyond {
                0 => self.unpack(index, &by_name),
                1 => beyond_of(index, age),
                _ => continue,
            };
            known.insert(package.source.clone());
            found.push(package);
        }
        self.unpacked.retain(|source, _| known.contains(source));
        found
    }

    /// A package, taken apart once for each version of its ConfigMaps.
    fn unpack(&mut self, index: &Arc<ConfigMap>, all: &BTreeMap<(String, String), Arc<ConfigMap>>) -> Found {
        let metadata = &index.metadata;
        let (namespace, name) = (text(metadata.namespace.as_ref()), text(metadata.name.as_ref()));
        let source = PolicySource { namespace: namespace.clone(), config_map: name.clone() };
        let chunk = |chunk: &str| all.get(&(namespace.clone(), chunk.to_owned())).cloned();
        let chunks = package::chunk_names(index).unwrap_or_default();
        let version = |map: &ConfigMap| format!("{:?}/{:?}", map.metadata.uid, map.metadata.resource_version);
        let mut versions = vec![version(index)];
        versions.extend(chunks.iter().map(|name| chunk(name).map_or_else(String::new, |chunk| version(&chunk))));
        if let Some((_, found)) = self.unpacked.get(&source).filter(|(known, _)| *known == versions) {
            return found.clone();
        }
        let package = package::unpack(index, chunk).map(Arc::new).map_err(NoPackage::Wrong);
        let digest = package.as_ref().map_or_else(|_| raw(index), |package| package.digest());
        let found = Found { source: source.clone(), age: age_of(index), digest, package };
        self.unpacked.insert(source, (versions, found.clone()));
        found
    }
}

fn age_of(index: &ConfigMap) -> Age {
    let metadata = &index.metadata;
    Age::new(metadata.creation_timestamp.as_ref(), text(metadata.namespace.as_ref()), text(metadata.name.as_ref()))
}

/// A package that is not looked into.
fn beyond_of(index: &ConfigMap, age: Age) -> Found {
    let source = PolicySource { namespace: age.namespace.clone(), config_map: age.name.clone() };
    // Whatever it holds, it is told the same.
    let digest = Digest::of_json(&json!(index.metadata.uid));
    Found { source, age, digest, package: Err(NoPackage::OneTooMany) }
}

fn text(text: Option<&String>) -> String {
    text.cloned().unwrap_or_default()
}

/// The digest of what stands in a ConfigMap that is no package.
fn raw(index: &ConfigMap) -> Digest {
    Digest::of_json(&json!([index.data, index.binary_data]))
}
