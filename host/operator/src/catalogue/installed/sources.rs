//! Finds the packages, which are ConfigMaps with the label `kaos.tools/policy`, and the operator's own ConfigMap of
//! settings.

mod broken;
mod held;
mod reader;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::{FutureExt as _, StreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kaos_crds::{PolicyRevisionSpec, PolicySource};
use kaos_policy::{contract::ResourceType, digest::Digest, settings::Layer};
use kube::{
    Api, Client, Resource,
    api::PartialObjectMeta,
    core::ObjectMeta,
    runtime::{WatchStreamExt as _, reflector, reflector::Store, watcher},
};
use serde_json::json;
use tokio::{sync::Notify, task::JoinSet};

pub(super) use self::held::{Held, NoPackage};
use self::{
    broken::Followed,
    reader::{Labelled, Reader, Seen},
};
use crate::{
    catalogue::{Age, operator_config},
    config_maps::OPERATOR_CONFIG,
    error_text::watch_status,
    package::{self, Package},
    watch::{ForeignWatch, Watch},
};

/// The current state of a package.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) source: PolicySource,
    pub(super) age: Age,
    /// The content of the package. `None` while the operator cannot read the content. The package still exists, so its
    /// serving revision keeps serving.
    pub(super) held: Option<Held>,
}

impl Found {
    /// Returns the package, or `None` if the operator could not read the package or the package is invalid.
    pub(super) fn package(&self) -> Option<&Arc<Package>> {
        self.held.as_ref()?.package.as_ref().ok()
    }
}

/// Returns the package of a revision, if a ConfigMap contains it now.
pub(super) fn held_now<'a>(revision: &PolicyRevisionSpec, found: &'a [Found]) -> Option<&'a Arc<Package>> {
    let mut held = found.iter().filter_map(|found| found.held.as_ref());
    held.find(|held| held.digest.to_string() == revision.package_digest)?.package.as_ref().ok()
}

/// The maximum number of packages in a namespace other than the operator's. The limit is needed because the operator
/// stores the bytes of serving revisions in its own namespace, where the tenant's quota does not apply. The operator
/// refuses the first package above the maximum with a message, and ignores all further packages.
pub(super) const MAX_PACKAGES: usize = 16;
/// The page size for listing ConfigMaps of other namespaces. Annotations can make the metadata of a ConfigMap as large
/// as its data.
const PAGE: u32 = 50;

/// The watches on packages, and the notification of changes.
pub(super) struct Sources {
    home: String,
    own: Store<ConfigMap>,
    /// The ConfigMaps of all other namespaces; `None` if the operator accepts no packages in other namespaces.
    others: Option<Store<PartialObjectMeta<ConfigMap>>>,
    config: Store<ConfigMap>,
    changed: Arc<Notify>,
    reader: Reader,
    _watches: JoinSet<()>,
}

/// Starts a watch that trims each object with `trim` and stores the result. The watch ends when `watches` is dropped.
/// After an error, the watch lists all objects again, so that the result shows at once whether the watch works again.
pub(super) fn keep<K>(
    api: Api<K>,
    config: watcher::Config,
    of: K::DynamicType,
    trim: fn(&mut K),
    (beside, changed): (Arc<ForeignWatch>, &Arc<Notify>),
    watches: &mut JoinSet<()>,
) -> Store<K>
where
    K: Resource + Clone + std::fmt::Debug + Send + Sync + serde::de::DeserializeOwned + 'static,
    K::DynamicType: Eq + std::hash::Hash + Clone + Send + Sync,
{
    let followed = Followed::new(&api, &of);
    let writer = reflector::store::Writer::new(of);
    let store = writer.as_reader();
    let changed = Arc::clone(changed);
    let backoff = watcher::DefaultBackoff::default();
    let until_error = move || {
        // After an error, open a new watch, which lists at once. The old watch would show that it works again only when
        // an object changes.
        let open = Some(Box::pin(watcher(api.clone(), config.clone())));
        stream::unfold(open, async |open| {
            let mut open = open?;
            let event = open.next().await?;
            let open = event.is_ok().then_some(open);
            Some((event, open))
        })
    };
    let events = stream::repeat_with(until_error).flatten();
    let events = reflector(writer, events.backoff(backoff).modify(trim));
    watches.spawn(async move {
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            match event {
                // Do nothing before the list is complete, because the store is still incomplete too.
                Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => {}
                Ok(_) => {
                    beside.follows();
                    changed.notify_one();
                }
                Err(error) => {
                    let code = watch_status(&error);
                    let error = followed.describe(&error);
                    beside.broke(code, &error);
                    // Wake the lifecycle, which waits for the first list: if the API server does not serve the type,
                    // there will be no list.
                    changed.notify_one();
                    tracing::warn!(error, "watch on policies failed; reopening it");
                }
            }
        }
    });
    store
}

/// A `trim` function for [`keep`] that keeps the whole object.
pub(super) fn whole<K>(_: &mut K) {}

/// Keeps only the metadata that the operator needs. Users write the rest of the metadata, so the rest can be large.
fn trimmed(object: &mut PartialObjectMeta<ConfigMap>) {
    let all = std::mem::take(&mut object.metadata);
    let mut labels = all.labels.unwrap_or_default();
    labels.retain(|label, _| label == package::LABEL);
    object.metadata = ObjectMeta {
        name: all.name,
        namespace: all.namespace,
        uid: all.uid,
        resource_version: all.resource_version,
        creation_timestamp: all.creation_timestamp,
        deletion_timestamp: all.deletion_timestamp,
        labels: Some(labels),
        ..ObjectMeta::default()
    };
}

/// Returns whether the watch has listed its objects.
pub(super) fn is_listed<K>(store: &Store<K>) -> bool
where
    K: Resource + Clone + 'static,
    K::DynamicType: Eq + std::hash::Hash + Clone,
{
    store.wait_until_ready().now_or_never().is_some_and(|listed| listed.is_ok())
}

impl Sources {
    /// Starts watches on the packages of the operator's namespace or, with `everywhere`, of all namespaces.
    pub(super) fn follow(client: &Client, watch: &Watch, namespace: &str, everywhere: bool) -> Self {
        let home: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let (changed, mut watches) = (Arc::new(Notify::new()), JoinSet::new());
        let labelled = watcher::Config::default().labels(package::LABEL);
        let named = watcher::Config::default().fields(&format!("metadata.name={OPERATOR_CONFIG}"));
        let elsewhere = labelled.clone().fields(&format!("metadata.namespace!={namespace}")).page_size(PAGE);
        let told = |what| (Arc::new(watch.beside(ResourceType::new("v1", "ConfigMap"), what)), &changed);
        let own = keep(home.clone(), labelled, (), whole, told("packages of policies"), &mut watches);
        let config = keep(home, named, (), whole, told("the operator's settings"), &mut watches);
        // This watch stores metadata only: otherwise a tenant with a thousand packages could fill the operator's
        // memory.
        let all =
            || keep(Api::all(client.clone()), elsewhere, (), trimmed, told("policies of namespaces"), &mut watches);
        let others = everywhere.then(all);
        let reader = Reader::new(client.clone());
        Self { home: namespace.to_owned(), own, others, config, changed, reader, _watches: watches }
    }

    /// Returns whether all watches have listed their objects.
    pub(super) fn are_known(&self) -> bool {
        is_listed(&self.own) && self.others.as_ref().is_none_or(is_listed) && is_listed(&self.config)
    }

    /// Waits until a watch reports a change of a package, or of the operator's own ConfigMap.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns the delay after which the operator reads packages again even if nothing changes.
    pub(super) fn again(&self) -> Option<Duration> {
        self.reader.again()
    }

    /// Returns the operator's own ConfigMap, or `None` if it does not exist.
    pub(super) fn config_map(&self) -> Option<Arc<ConfigMap>> {
        self.config.state().into_iter().next()
    }

    /// Returns the settings in the operator's own ConfigMap, or `None` if the ConfigMap does not exist.
    pub(super) fn config(&self) -> Option<Layer> {
        self.config_map().map(|config| operator_config(&config))
    }

    /// Returns all packages, the oldest first.
    pub(super) async fn packages(&mut self) -> Vec<Found> {
        let labelled = self.labelled();
        let mut found = self.taken(&labelled);
        let unread: Vec<&PolicySource> =
            found.iter().filter(|found| found.held.is_none()).map(|found| &found.source).collect();
        self.reader.read(&unread, &labelled).await;
        for found in found.iter_mut().filter(|found| found.held.is_none()) {
            found.held = self.reader.held(&found.source);
        }
        found
    }

    /// Returns the ConfigMaps with the label of packages.
    fn labelled(&self) -> Labelled {
        let own = self.own.state().into_iter().map(Seen::Whole);
        let others = self.others.iter().flat_map(Store::state).map(Seen::Metadata);
        own.chain(others).map(|seen| (place_of(seen.metadata()), seen)).collect()
    }

    /// Returns the packages, the oldest first. The caller adds their contents. If a namespace has too many packages,
    /// the result includes the first package above the maximum, with a refusal as its content. The function ignores all
    /// further packages of this namespace.
    fn taken(&self, labelled: &Labelled) -> Vec<Found> {
        let is_index = |metadata: &ObjectMeta| package::is_index(metadata) && metadata.deletion_timestamp.is_none();
        let indexes = labelled.iter().map(|(source, seen)| (source, seen.metadata()));
        let mut indexes: Vec<(Age, &PolicySource, &ObjectMeta)> = indexes
            .filter(|(_, metadata)| is_index(metadata))
            .map(|(source, metadata)| (age_of(source, metadata), source, metadata))
            .collect();
        indexes.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        let mut many: BTreeMap<&str, usize> = BTreeMap::new();
        let mut found = Vec::new();
        for (age, source, metadata) in indexes {
            let count = many.entry(source.namespace.as_str()).or_default();
            *count += 1;
            let beyond = if source.namespace == self.home { 0 } else { count.saturating_sub(MAX_PACKAGES) };
            let held = match beyond {
                0 => None,
                1 => Some(one_too_many(metadata)),
                _ => continue,
            };
            found.push(Found { source: source.clone(), age, held });
        }
        found
    }
}

/// Returns the namespace and name of a ConfigMap.
fn place_of(metadata: &ObjectMeta) -> PolicySource {
    PolicySource {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        config_map: metadata.name.clone().unwrap_or_default(),
    }
}

fn age_of(source: &PolicySource, metadata: &ObjectMeta) -> Age {
    Age::new(metadata.creation_timestamp.as_ref(), source.namespace.clone(), source.config_map.clone())
}

/// Returns the content for a package above the maximum. This content does not depend on the ConfigMap's data, because
/// the operator does not read this data.
fn one_too_many(metadata: &ObjectMeta) -> Held {
    Held { digest: Digest::of_json(&json!(metadata.uid)), package: Err(NoPackage::OneTooMany) }
}
