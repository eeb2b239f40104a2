//! The chunk ConfigMaps of packages: the chunks of one index, and chunks that no index lists any more.

use std::collections::BTreeMap;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, api::ListParams};

use crate::package::{CHUNK, INDEX_ANNOTATION, LABEL, chunk_names};

/// The chunks of a namespace, by the index that their annotation names.
pub(super) type Chunks = BTreeMap<String, Vec<String>>;

/// Lists all chunks of a namespace. Returns none if the user may not list them.
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
        chunks.entry(index.unwrap_or_default()).or_default().extend(chunk.metadata.name);
    }
    Ok(chunks)
}

/// Lists the chunks of a namespace that no index lists any more.
pub(super) async fn left_over(client: &Client, namespace: &str) -> anyhow::Result<Vec<String>> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let mut left = Vec::new();
    for (index, mut chunks) in of_namespace(client, namespace).await? {
        let there = match &*index {
            "" => None,
            index => api.get_opt(index).await.with_context(|| format!("ConfigMap {namespace}/{index}"))?,
        };
        if let Some(there) = there {
            // If the list of an index is unreadable, it may contain any of its chunks: keep them all.
            let Ok(listed) = chunk_names(&there) else { continue };
            chunks.retain(|chunk| !listed.contains(chunk));
        }
        left.extend(chunks);
    }
    left.sort();
    Ok(left)
}
