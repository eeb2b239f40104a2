//! Writes the ConfigMaps of a package, so that at no moment two of them contradict each other.

use anyhow::{Context, anyhow, bail};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};

use crate::package::{CHUNK, CHUNKS, COMPONENT, GZIPPED, INDEX_ANNOTATION, LABEL, Packed};

/// As whom we write.
const MANAGER: &str = "kaos-operator-policy";

/// Writes ConfigMaps into one namespace.
pub(super) struct Installer {
    api: Api<ConfigMap>,
    namespace: String,
    force: bool,
}

impl Installer {
    /// With `force`, fields that somebody else wrote are taken over.
    pub(super) fn new(client: Client, namespace: &str, force: bool) -> Self {
        Self { api: Api::namespaced(client, namespace), namespace: namespace.to_owned(), force }
    }

    /// Writes the chunks, and then the index in one write.
    pub(super) async fn write(&self, packed: &Packed) -> anyhow::Result<()> {
        for chunk in &packed.chunks {
            self.apply(chunk).await?;
        }
        let index = &packed.index;
        let name = name(index);
        let there = self.api.get_opt(name).await.with_context(|| self.place(name))?;
        match there {
            // A key of somebody else's apply would stay beside ours, and the package would be none.
            Some(there) if contradicts(&there, index) => self.replace(there, index).await,
            _ => self.apply(index).await,
        }
    }

    /// Deletes chunks that the index lists no more.
    pub(super) async fn sweep(&self, packed: &Packed) -> anyhow::Result<()> {
        let (index, kept) = (name(&packed.index), packed.chunks.iter().map(name).collect::<Vec<_>>());
        let chunks = ListParams::default().labels(&format!("{LABEL}={CHUNK}"));
        let found = self.api.list(&chunks).await.with_context(|| self.place("(chunks)"))?;
        for chunk in found.items.iter().filter(|chunk| !kept.contains(&name(chunk))) {
            let annotations = chunk.metadata.annotations.as_ref();
            if annotations.and_then(|all| all.get(INDEX_ANNOTATION)).is_some_and(|of| of == index) {
                self.api
                    .delete(name(chunk), &DeleteParams::default())
                    .await
                    .with_context(|| self.place(name(chunk)))?;
            }
        }
        Ok(())
    }

    async fn apply(&self, map: &ConfigMap) -> anyhow::Result<()> {
        let name = name(map);
        let parameters = PatchParams { force: self.force, ..PatchParams::apply(MANAGER) };
        match self.api.patch(name, &parameters, &Patch::Apply(map)).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_conflict() => {
                Err(anyhow!("{}: {}: take it over with --force-conflicts", self.place(name), status.message))
            }
            Err(error) => Err(anyhow::Error::new(error).context(self.place(name))),
        }
    }

    async fn replace(&self, mut there: ConfigMap, wanted: &ConfigMap) -> anyhow::Result<()> {
        let name = name(wanted);
        if !self.force {
            bail!(
                "{}: somebody else wrote a component in another form: take it over with --force-conflicts",
                self.place(name)
            );
        }
        there.data.clone_from(&wanted.data);
        there.binary_data.clone_from(&wanted.binary_data);
        there.metadata.labels.get_or_insert_default().extend(wanted.metadata.labels.clone().unwrap_or_default());
        let parameters = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        // With the version that was read: whoever wrote in between is not overwritten.
        self.api.replace(name, &parameters, &there).await.with_context(|| self.place(name))?;
        Ok(())
    }

    fn place(&self, name: &str) -> String {
        format!("ConfigMap {}/{name}", self.namespace)
    }
}

/// Whether one holds its component under another key than the other.
fn contradicts(there: &ConfigMap, wanted: &ConfigMap) -> bool {
    let keys = |map: &ConfigMap| -> Vec<&str> {
        let texts = map.data.iter().flatten().map(|(key, _)| key.as_str());
        let all: Vec<&str> = texts.chain(map.binary_data.iter().flatten().map(|(key, _)| key.as_str())).collect();
        [COMPONENT, GZIPPED, CHUNKS].into_iter().filter(|key| all.contains(key)).collect()
    };
    let wanted = keys(wanted);
    keys(there).iter().any(|key| !wanted.contains(key))
}

fn name(map: &ConfigMap) -> &str {
    map.metadata.name.as_deref().unwrap_or_default()
}
