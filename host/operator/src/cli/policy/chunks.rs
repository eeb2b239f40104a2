//! Lists and deletes the chunks of packages. Also finds chunks that no index lists any more. A package's index is the
//! ConfigMap that lists the package's chunks.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Context as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PartialObjectMeta, Preconditions},
};

use crate::package::{CHUNK, INDEX_ANNOTATION, LABEL, chunk_names};

/// A chunk without an index counts as left over only after this time. A younger chunk may belong to a running push,
/// because a push writes the chunks first and the index last.
const PUSHED: Duration = Duration::from_mins(10);

/// A chunk in the version that the command read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) name: String,
    uid: Option<String>,
    resource_version: Option<String>,
    created: Option<Timestamp>,
}

/// The chunks of a namespace, by the name of their index. An annotation of each chunk contains this name.
pub(super) type Chunks = BTreeMap<String, Vec<Chunk>>;

/// The result of an attempt to delete a chunk.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The chunk was deleted.
    Gone,
    /// The index exists again and lists the chunk.
    Listed,
    /// The chunk changed after the command read it.
    Changed,
}

/// Lists all chunks of a namespace. Returns an empty map if the user has no right to list ConfigMaps.
pub(super) async fn of_namespace(client: &Client, namespace: &str) -> anyhow::Result<Chunks> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let listed = match api.list_metadata(&ListParams::default().labels(&format!("{LABEL}={CHUNK}"))).await {
        Ok(listed) => listed,
        Err(kube::Error::Api(answer)) if answer.code == 403 => return Ok(Chunks::new()),
        Err(error) => return Err(error).with_context(|| format!("ConfigMaps of namespace {namespace}")),
    };
    let mut chunks = Chunks::new();
    for chunk in listed.items {
        let index = chunk.metadata.annotations.as_ref().and_then(|all| all.get(INDEX_ANNOTATION)).cloned();
        chunks.entry(index.unwrap_or_default()).or_default().extend(Chunk::of(chunk));
    }
    Ok(chunks)
}

/// Returns the chunks of a namespace that no index lists any more. If the user has no right to read an index, leaves
/// out the index's chunks, because the index may still list these chunks.
pub(super) async fn left_over(client: &Client, namespace: &str, now: Timestamp) -> anyhow::Result<Vec<String>> {
    let mut left = Vec::new();
    for (index, mut chunks) in of_namespace(client, namespace).await? {
        chunks.retain(|chunk| !chunk.is_of_a_push(now));
        if chunks.is_empty() {
            continue;
        }
        match listed(client, namespace, &index).await {
            Ok(Listed::All) => continue,
            Ok(Listed::These(names)) => chunks.retain(|chunk| !names.contains(&chunk.name)),
            Err(kube::Error::Api(answer)) if answer.code == 403 => continue,
            Err(error) => return Err(error).with_context(|| format!("ConfigMap {namespace}/{index}")),
        }
        left.extend(chunks.into_iter().map(|chunk| chunk.name));
    }
    left.sort();
    Ok(left)
}

/// Deletes a chunk. Keeps the chunk if it changed after the command read it. Also keeps the chunk if the index lists it
/// again: after a new push of the same component, the chunks have the same names. No other index can use the chunk.
pub(super) async fn remove(client: &Client, namespace: &str, index: &str, chunk: &Chunk) -> anyhow::Result<Fate> {
    let Chunk { name, uid, resource_version, .. } = chunk;
    let place = |name: &str| format!("ConfigMap {namespace}/{name}");
    let is_listed = match listed(client, namespace, index).await.with_context(|| place(index))? {
        Listed::All => true,
        Listed::These(names) => names.contains(name),
    };
    if is_listed {
        return Ok(Fate::Listed);
    }
    let preconditions = Preconditions { uid: uid.clone(), resource_version: resource_version.clone() };
    let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    match api.delete(name, &parameters).await {
        Ok(_) => Ok(Fate::Gone),
        Err(kube::Error::Api(answer)) if answer.code == 404 => Ok(Fate::Gone),
        Err(kube::Error::Api(answer)) if answer.is_conflict() => Ok(Fate::Changed),
        Err(error) => Err(error).with_context(|| place(name)),
    }
}

/// The chunks that an index lists now.
enum Listed {
    /// The command cannot read the list in the index, so it treats every chunk as listed.
    All,
    These(Vec<String>),
}

async fn listed(client: &Client, namespace: &str, index: &str) -> Result<Listed, kube::Error> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let there = if index.is_empty() { None } else { api.get_opt(index).await? };
    let names = there.map_or_else(|| Ok(Vec::new()), |there| chunk_names(&there));
    Ok(names.map_or(Listed::All, Listed::These))
}

impl Chunk {
    fn of(chunk: PartialObjectMeta<ConfigMap>) -> Option<Self> {
        let metadata = chunk.metadata;
        Some(Self {
            name: metadata.name?,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            created: metadata.creation_timestamp.map(|time| time.0),
        })
    }

    /// Returns whether the chunk can belong to a push that is still running.
    fn is_of_a_push(&self, now: Timestamp) -> bool {
        let age = |created: Timestamp| Duration::try_from(now.duration_since(created)).unwrap_or_default();
        self.created.is_some_and(|created| age(created) < PUSHED)
    }
}

#[cfg(test)]
mod tests {
    use kaos_cluster::{
        Cluster,
        faults::{Attempt, Verb},
    };
    use serde_json::{Value, json};

    use super::*;

    fn plant(cluster: &Cluster, name: &str, of: &str, value: &str, created: Timestamp) {
        let map: Value = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "default", "labels": {LABEL: value},
                "annotations": {INDEX_ANNOTATION: of}, "creationTimestamp": created.to_string()},
            "data": if value == CHUNK { json!({}) } else { json!({"policy.chunks": of}) },
        });
        cluster.plant("", "configmaps", map);
    }

    fn times() -> (Timestamp, Timestamp, Timestamp) {
        let now = Timestamp::from_second(2_000_000_000).unwrap();
        (now, now - Duration::from_mins(9), now - Duration::from_mins(11))
    }

    #[tokio::test]
    async fn chunks_that_a_running_push_may_have_written_are_not_left_over() {
        let cluster = Cluster::start();
        let client = Client::new(cluster.service(), "default");
        let (now, young, old) = times();
        plant(&cluster, "young", "nowhere", CHUNK, young);
        plant(&cluster, "old", "nowhere", CHUNK, old);
        assert_eq!(left_over(&client, "default", now).await.unwrap(), ["old"]);
    }

    #[tokio::test]
    async fn chunks_whose_index_may_not_be_read_are_not_left_over() {
        let cluster = Cluster::start();
        let client = Client::new(cluster.service(), "default");
        let (now, _, old) = times();
        plant(&cluster, "withheld-1", "withheld", CHUNK, old);
        plant(&cluster, "gone-1", "gone", CHUNK, old);
        cluster.authorise(|attempt: &Attempt| attempt.verb != Verb::Get || attempt.name != "withheld");
        assert_eq!(left_over(&client, "default", now).await.unwrap(), ["gone-1"]);
    }

    #[tokio::test]
    async fn a_chunk_is_deleted_only_unchanged_and_only_if_no_index_lists_it() {
        let cluster = Cluster::start();
        let client = Client::new(cluster.service(), "default");
        let (_, _, old) = times();
        for name in ["a-1", "a-2", "a-3"] {
            plant(&cluster, name, "a", CHUNK, old);
        }
        let chunks = of_namespace(&client, "default").await.unwrap().remove("a").unwrap();
        // In the meantime, another user pushes a package with the first chunk, and replaces the second chunk.
        plant(&cluster, "a", "a-1", "package", old);
        plant(&cluster, "a-2", "a", CHUNK, old);
        let mut fates = Vec::new();
        for chunk in &chunks {
            fates.push(remove(&client, "default", "a", chunk).await.unwrap());
        }
        assert_eq!(fates, [Fate::Listed, Fate::Changed, Fate::Gone]);
        let is_there = |name| cluster.object("", "configmaps", "default", name).is_some();
        assert!(is_there("a-1") && is_there("a-2") && !is_there("a-3"));
    }
}
