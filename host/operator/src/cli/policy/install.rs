//! Writes the ConfigMaps of a package in such an order that the cluster always has a consistent package, even between
//! two writes.
//!
//! A user can apply the output of `policy pack` with `kubectl apply --server-side`, and also run `policy push` and
//! `policy rollback`. All three commands use the same field manager, so that their writes do not conflict with each
//! other.

use anyhow::{Context, anyhow, bail};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    core::Status,
};
use serde_json::Value;

use super::answering::moved;
use crate::package::{CHUNK, CHUNKS, COMPONENT, GZIPPED, INDEX_ANNOTATION, LABEL, Packed, policy_file};

/// Field manager of the writes: the default of `kubectl apply --server-side`.
const MANAGER: &str = "kubectl";
/// The field manager that earlier versions used. If `kaos-operator-policy` applied fields of a ConfigMap, later writes
/// of this ConfigMap use the same manager.
const FORMER: &str = "kaos-operator-policy";

/// Writes ConfigMaps into one namespace.
pub(super) struct Installer {
    api: Api<ConfigMap>,
    namespace: String,
    force: bool,
}

impl Installer {
    /// Creates an installer for a namespace. With `force`, the installer takes over fields of other field managers.
    pub(super) fn new(client: Client, namespace: &str, force: bool) -> Self {
        Self { api: Api::namespaced(client, namespace), namespace: namespace.to_owned(), force }
    }

    /// Writes the chunks first, and then the index in one write.
    pub(super) async fn write(&self, packed: &Packed) -> anyhow::Result<()> {
        for chunk in &packed.chunks {
            self.apply(chunk, self.there(name(chunk)).await?.as_ref()).await?;
        }
        let index = &packed.index;
        let there = self.there(name(index)).await?;
        match there {
            // Replace the ConfigMap: a server-side apply would keep the component that another field manager wrote
            // under another key, and the package would be invalid.
            Some(there) if contradicts(&there, index) => self.replace(there, index).await,
            there => self.apply(index, there.as_ref()).await,
        }
    }

    /// Fails if the package in the existing ConfigMap of this name applies in other namespaces than the new package.
    pub(super) async fn refuse_move(&self, packed: &Packed) -> anyhow::Result<()> {
        let name = name(&packed.index);
        // If the command cannot read the package in the ConfigMap, no policy in it serves. So the write cannot stop a
        // policy.
        let Some(there) = self.there(name).await?.and_then(|there| policy_file(&there).ok()) else { return Ok(()) };
        let Some((from, to)) = moved(&there.scope, &policy_file(&packed.index)?.scope) else { return Ok(()) };
        bail!(
            "{} applies in {from}, but would then apply in {to} instead: choose another name with --name to keep both \
             packages, or allow the change with --move",
            self.place(name)
        )
    }

    async fn there(&self, name: &str) -> anyhow::Result<Option<ConfigMap>> {
        self.api.get_opt(name).await.with_context(|| self.place(name))
    }

    /// Deletes chunks that the index does not list any more.
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

    async fn apply(&self, map: &ConfigMap, there: Option<&ConfigMap>) -> anyhow::Result<()> {
        let name = name(map);
        let writer = there.map_or(MANAGER, writer);
        let map = there.map_or_else(|| map.clone(), |there| marked(map, there, writer));
        let apply = async |force| {
            let parameters = PatchParams { force, ..PatchParams::apply(writer) };
            self.api.patch(name, &parameters, &Patch::Apply(&map)).await
        };
        let applied = match apply(self.force).await {
            Err(kube::Error::Api(status)) if is_among_ours(&status) => apply(true).await,
            applied => applied,
        };
        match applied {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_conflict() => {
                Err(anyhow!("{}: {}: take the fields over with --force-conflicts", self.place(name), status.message))
            }
            Err(error) => Err(anyhow::Error::new(error).context(self.place(name))),
        }
    }

    async fn replace(&self, mut there: ConfigMap, wanted: &ConfigMap) -> anyhow::Result<()> {
        let name = name(wanted);
        if !self.force {
            bail!(
                "{}: another field manager wrote the component under another key: take the component over with \
                 --force-conflicts",
                self.place(name)
            );
        }
        there.data.clone_from(&wanted.data);
        there.binary_data.clone_from(&wanted.binary_data);
        there.metadata.labels.get_or_insert_default().extend(wanted.metadata.labels.clone().unwrap_or_default());
        let parameters = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        // The request names the version that this client read, so the API server refuses it after a concurrent write.
        self.api.replace(name, &parameters, &there).await.with_context(|| self.place(name))?;
        Ok(())
    }

    fn place(&self, name: &str) -> String {
        format!("ConfigMap {}/{name}", self.namespace)
    }
}

/// Returns the field manager for writes to an existing ConfigMap.
fn writer(there: &ConfigMap) -> &'static str {
    if applied_by(there, FORMER).next().is_some() { FORMER } else { MANAGER }
}

/// Returns the fields of a ConfigMap that a field manager applied, as trees.
fn applied_by<'a>(there: &'a ConfigMap, manager: &'a str) -> impl Iterator<Item = &'a Value> {
    let entries = there.metadata.managed_fields.iter().flatten();
    let is_its = move |entry: &&ManagedFieldsEntry| {
        entry.manager.as_deref() == Some(manager) && entry.operation.as_deref() == Some("Apply")
    };
    entries.filter(is_its).filter_map(|entry| entry.fields_v1.as_ref()).map(|fields| &fields.0)
}

/// Adds the labels and annotations that the same field manager applied earlier. Without this step, a server-side apply
/// would remove the labels and annotations.
fn marked(map: &ConfigMap, there: &ConfigMap, writer: &str) -> ConfigMap {
    let mut map = map.clone();
    let is_its = |kind: &str, key: &str| {
        applied_by(there, writer).any(|fields| !fields["f:metadata"][kind][format!("f:{key}")].is_null())
    };
    let marks = [
        ("f:labels", &there.metadata.labels, &mut map.metadata.labels),
        ("f:annotations", &there.metadata.annotations, &mut map.metadata.annotations),
    ];
    for (kind, there, wanted) in marks {
        for (key, value) in there.iter().flatten().filter(|(key, _)| is_its(kind, key)) {
            wanted.get_or_insert_default().entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    map
}

/// Returns whether an apply conflicts only with field managers that the same user probably used: kubectl and this
/// program.
fn is_among_ours(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let mut managers = causes.filter_map(|cause| cause.message.split('"').nth(1)).peekable();
    let is_ours = |manager: &str| manager == FORMER || manager == MANAGER || manager.starts_with("kubectl-");
    status.is_conflict() && managers.peek().is_some() && managers.all(is_ours)
}

/// Returns whether an apply would leave a wrong component in the existing ConfigMap. The key of such a component is not
/// in the new ConfigMap, and an apply would not remove this key.
fn contradicts(there: &ConfigMap, wanted: &ConfigMap) -> bool {
    let keys = |map: &ConfigMap| -> Vec<&str> {
        let texts = map.data.iter().flatten().map(|(key, _)| key.as_str());
        let all: Vec<&str> = texts.chain(map.binary_data.iter().flatten().map(|(key, _)| key.as_str())).collect();
        [COMPONENT, GZIPPED, CHUNKS].into_iter().filter(|key| all.contains(key)).collect()
    };
    let holds = |fields: &Value, key: &str| {
        ["f:data", "f:binaryData"].iter().any(|kind| !fields[kind][format!("f:{key}")].is_null())
    };
    let owners = |key: &str| {
        let entries = there.metadata.managed_fields.iter().flatten();
        entries.filter(|entry| entry.fields_v1.as_ref().is_some_and(|fields| holds(&fields.0, key))).count()
    };
    let is_ours_alone =
        |key: &str| owners(key) == 1 && applied_by(there, writer(there)).any(|fields| holds(fields, key));
    let wanted = keys(wanted);
    keys(there).iter().any(|key| !wanted.contains(key) && !is_ours_alone(key))
}

fn name(map: &ConfigMap) -> &str {
    map.metadata.name.as_deref().unwrap_or_default()
}
