//! What is to be shipped to a cluster, as the user names it: a component, ConfigMaps that were packed before, or
//! settings alone. It is checked here as a cluster would check it, whatever verb asks.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kaos_policy::{
    gate,
    manifest::{PolicyFile, Scope},
    settings::{Layer, Origin as Given},
};
use serde_json::Value;

use super::{
    answering::{PLANNED, Shipped},
    output::complain,
};
use crate::{
    catalogue::{Age, reach},
    input,
    package::{Package, Packed, is_chunk, is_index, pack, unpack},
    policies::{Candidate, Loaded, Loader, Origin},
    reading::{self, OBJECTS},
};

/// Arguments that say what to ship.
#[derive(Debug, Clone, Args)]
pub(super) struct Shipment {
    /// A component, its policy.yaml beside it; ConfigMaps that `policy pack` printed; or a policy.yaml of settings alone
    #[arg(value_name = "X.wasm|FILE.yaml", required_unless_present = "policy")]
    file: Option<PathBuf>,
    /// Settings as YAML, instead of those in policy.yaml
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// The policy whose settings to change, when nothing but settings is shipped
    #[arg(long = "for", value_name = "POLICY", conflicts_with = "file", requires = "settings")]
    policy: Option<String>,
    /// Let it hold in these namespaces, instead of those in policy.yaml
    #[arg(long, value_delimiter = ',', value_name = "A,B", value_parser = super::namespace)]
    scope: Vec<String>,
    /// Name of the ConfigMap; otherwise policy-<name>, and policy-<name>-settings for settings alone
    #[arg(long)]
    name: Option<String>,
}

/// What is shipped, checked.
pub(super) struct Ready {
    /// What `policy.yaml` says.
    pub(super) file: PolicyFile,
    /// The component that passed the gate; none for settings alone.
    pub(super) policy: Option<Loaded>,
    /// Its ConfigMaps.
    pub(super) packed: Packed,
}

impl Ready {
    /// The same as something that was shipped, the youngest of all, to the operator that lives in `home`.
    pub(super) fn shipped(self, home: &str) -> anyhow::Result<Shipped> {
        let Self { file, policy, packed } = self;
        let metadata = packed.index.metadata;
        let (namespace, name) = (metadata.namespace.unwrap_or_default(), metadata.name.unwrap_or_default());
        reach(&file, &namespace, home)?;
        let age = Age { created: "9999".to_owned(), namespace: namespace.clone(), name: name.clone() };
        let (policy, since) = (policy.map(|loaded| loaded.policy), Some(Timestamp::MAX));
        let source = (namespace, name);
        Ok(Shipped { revision: PLANNED.into(), source, policy, file, age, since, predecessor: None })
    }
}

/// The namespace of the ConfigMaps: what a flag says, else the file that they were packed in, else the usual one. A
/// flag that says another one than the file is more likely a mistake than a move.
pub(super) fn agreed(flag: &str, said: Option<String>, packed: Option<&str>, usual: &str) -> anyhow::Result<String> {
    match (said, packed) {
        (Some(said), Some(packed)) if said != packed => {
            bail!(
                "{flag} {said}: the file was packed for namespace {packed}: pack it for {said}, or leave out the flag"
            )
        }
        (Some(said), _) => Ok(said),
        (None, packed) => Ok(packed.unwrap_or(usual).to_owned()),
    }
}

/// A package as it was read.
struct Raw {
    file: PolicyFile,
    component: Option<Vec<u8>>,
    /// What ConfigMaps that were packed say of themselves.
    name: Option<String>,
    namespace: Option<String>,
}

impl Shipment {
    /// Reads and checks it. The ConfigMaps are to lie where `place` says, which is told the namespace of a packed file.
    pub(super) fn ready(
        self,
        loader: &Loader,
        place: impl FnOnce(Option<&str>) -> anyhow::Result<String>,
    ) -> anyhow::Result<Ready> {
        let Self { file: path, settings, policy: of, scope, name } = self;
        let raw = match &path {
            Some(path) => read(path)?,
            None => Raw::unpacked(PolicyFile { name: of, ..PolicyFile::default() }, None),
        };
        let Raw { mut file, component, name: packed_name, namespace } = raw;
        let namespace = place(namespace.as_deref())?;
        if let Some(path) = &settings {
            file.settings = tree(path)?;
        }
        if !scope.is_empty() {
            file.scope = Scope { namespaces: scope, ..file.scope };
        }
        let told = path.or(settings).unwrap_or_default();
        let policy = if let Some(bytes) = component {
            let inner = gate::Candidate { bytes: bytes.clone(), file: file.clone() };
            let policy = admitted(loader, &told, inner)?;
            let id = policy.policy.id();
            (file.name, file.version) = (Some(id.name.clone()), Some(id.version.clone()));
            Some((policy, bytes))
        } else {
            check_settings(loader, &told, &file)?;
            None
        };
        let of = file.name.clone().unwrap_or_default();
        let usual = if policy.is_some() { format!("policy-{of}") } else { format!("policy-{of}-settings") };
        let component = policy.as_ref().map(|(_, bytes)| bytes.as_slice());
        let packed = pack(&name.or(packed_name).unwrap_or(usual), &namespace, &file, component)?;
        Ok(Ready { file, policy: policy.map(|(policy, _)| policy), packed })
    }
}

impl Raw {
    /// What no ConfigMap says.
    fn unpacked(file: PolicyFile, component: Option<Vec<u8>>) -> Self {
        Self { file, component, name: None, namespace: None }
    }
}

/// Whatever the file is.
fn read(path: &Path) -> anyhow::Result<Raw> {
    let named = || path.display().to_string();
    let bytes = reading::bytes(path, OBJECTS)?;
    let Some(text) = std::str::from_utf8(&bytes).ok().filter(|text| !text.starts_with('\0')) else {
        let Candidate { inner: gate::Candidate { bytes, file }, .. } = Candidate::read(path)?;
        return Ok(Raw::unpacked(file, Some(bytes)));
    };
    if let Some(raw) = packed(&named(), text)? {
        return Ok(raw);
    }
    let file = PolicyFile::parse(text).with_context(named)?;
    Ok(Raw::unpacked(file, None))
}

/// The one package among the objects of a text; none if it has no objects.
fn packed(path: &str, text: &str) -> anyhow::Result<Option<Raw>> {
    // No namespace instead of the usual one: where none is said, whoever asks knows better.
    let (documents, _) = input::parse(&path.into(), text, "");
    let mut config_maps = Vec::new();
    for document in documents.into_iter().filter(|document| document.identity.kind == "ConfigMap") {
        let mut map: ConfigMap = serde_json::from_value(document.object)
            .with_context(|| format!("{}: ConfigMap {}", document.origin, document.identity.name))?;
        map.metadata.namespace = map.metadata.namespace.filter(|namespace| !namespace.is_empty());
        config_maps.push(map);
    }
    let mut indexes = config_maps.iter().filter(|map| is_index(&map.metadata));
    let Some(index) = indexes.next() else {
        if config_maps.is_empty() {
            return Ok(None);
        }
        bail!(
            "{path}: no ConfigMap in it has the label {}: name one that `policy pack` printed",
            crate::package::LABEL
        );
    };
    if indexes.next().is_some() {
        bail!("{path}: has several policies: name a file with one");
    }
    let chunk = |name: &str| {
        config_maps.iter().find(|map| is_chunk(&map.metadata) && map.metadata.name.as_deref() == Some(name))
    };
    let Package { name, file, component, .. } = unpack(index, chunk).with_context(|| path.to_owned())?;
    Ok(Some(Raw { file, component, name: Some(name), namespace: index.metadata.namespace.clone() }))
}

fn tree(path: &Path) -> anyhow::Result<Value> {
    let tree = input::document(path)?;
    if !tree.is_object() {
        bail!("{}: holds no settings: write the policy's settings as YAML fields", path.display());
    }
    Ok(tree)
}

fn admitted(loader: &Loader, path: &Path, inner: gate::Candidate) -> anyhow::Result<Loaded> {
    let candidate = Candidate { origin: Origin::File(path.to_owned()), inner };
    let policy = loader.check(&candidate).result.with_context(|| path.display().to_string())?;
    Ok(Loaded { origin: candidate.origin, policy, settings: candidate.inner.file.settings })
}

/// Checks settings for a policy of this binary; those for another are checked by the cluster that has it.
fn check_settings(loader: &Loader, path: &Path, file: &PolicyFile) -> anyhow::Result<()> {
    let Some(name) = file.name.as_deref() else {
        bail!("{}: says neither a component nor whose settings it has: add `name`, or use --for", path.display());
    };
    let embedded = loader.load(&[])?;
    match embedded.iter().find(|loaded| loaded.policy.id().name == name) {
        Some(loaded) => {
            let layer = Layer::tree(Given::File(path.display().to_string()), name, file.settings.clone());
            loaded.policy.schema().resolve(name, &[layer])?;
        }
        None => complain("note", format_args!("policy {name} is not at hand: its settings are checked by the cluster")),
    }
    Ok(())
}
