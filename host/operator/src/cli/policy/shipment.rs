//! What is to be shipped to a cluster, as the user names it: a component, ConfigMaps that were packed before, or
//! settings alone. It is checked here as a cluster would check it, whatever verb asks.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use clap::Args;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kaos_policy::{
    digest::Digest,
    gate,
    manifest::{PolicyFile, Scope},
    settings::{Layer, Origin as Given},
};
use serde_json::{Value, json};

use super::{
    answering::{PLANNED, Shipped},
    output::complain,
};
use crate::{
    catalogue::{Age, Grantable, reach},
    input::{self, InputError},
    package::{Package, Packed, is_chunk, is_index, pack, unpack},
    policies::{Candidate, Loaded, Loader, Origin, sample_cluster},
    reading::{self, OBJECTS},
};

/// Bytes of a name that says each namespace: revisions have room for that, and something behind it.
const LONGEST: usize = 160;

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
    /// Name of the ConfigMap; otherwise policy-<name>, or policy-<name>-settings for settings alone, and with --scope the
    /// namespaces behind that
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
    /// Whether flags said its name or where it holds.
    pub(super) is_placed: bool,
}

impl Ready {
    /// The same as something that is about to be shipped to the operator that lives in `home`, where that lets it in: it was
    /// started to grant so much at most.
    pub(super) fn shipped(self, home: &str, grantable: &Grantable) -> anyhow::Result<Shipped> {
        let Self { file, policy, packed, is_placed: _ } = self;
        let metadata = packed.index.metadata;
        let (namespace, name) = (metadata.namespace.unwrap_or_default(), metadata.name.unwrap_or_default());
        grantable.covers_grants(&file.grants)?;
        reach(&file, &namespace, home)?;
        if let Some(loaded) = &policy {
            grantable.covers_claims(&loaded.policy.descriptor().claims)?;
        }
        let age = Age::new(None, namespace.clone(), name.clone());
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
    /// Where its settings were written.
    settings_from: Option<Given>,
    /// What ConfigMaps that were packed say of themselves.
    name: Option<String>,
    namespace: Option<String>,
}

impl Shipment {
    /// Reads and checks it. The ConfigMaps are to lie where `place` says, which is told the namespace of a packed file.
    /// Settings are checked for a policy of this binary; those for another are checked by the cluster that has it.
    pub(super) fn ready(
        self,
        loader: &Loader,
        place: impl FnOnce(Option<&str>) -> anyhow::Result<String>,
    ) -> anyhow::Result<Ready> {
        self.checked(loader, place, |policy, settings| {
            if !fits(loader, &loader.load(&[])?, policy, settings)? {
                let later = "is not at hand: its settings are checked by the cluster";
                complain("note", format_args!("policy {policy} {later}"));
            }
            Ok(())
        })
    }

    /// The same for who asks beside these policies, and finds out about others.
    pub(super) fn ready_beside(
        self,
        loader: &Loader,
        there: &[Loaded],
        place: impl FnOnce(Option<&str>) -> anyhow::Result<String>,
    ) -> anyhow::Result<Ready> {
        self.checked(loader, place, |policy, settings| {
            fits(loader, there, policy, settings)?;
            Ok(())
        })
    }

    /// The same; `check` is told settings that come alone, and the policy that they are for.
    fn checked(
        self,
        loader: &Loader,
        place: impl FnOnce(Option<&str>) -> anyhow::Result<String>,
        check: impl FnOnce(&str, Layer) -> anyhow::Result<()>,
    ) -> anyhow::Result<Ready> {
        let Self { file: path, settings, policy: of, scope, name } = self;
        let is_placed = name.is_some() || !scope.is_empty();
        let raw = match &path {
            Some(path) => read(path)?,
            None => Raw::unpacked(PolicyFile { name: of, ..PolicyFile::default() }, None, None),
        };
        let Raw { mut file, component, mut settings_from, name: mut packed_name, namespace } = raw;
        let namespace = place(namespace.as_deref())?;
        if let Some(path) = &settings {
            file.settings = tree(path)?;
            settings_from = Some(written_in(path));
        }
        // One package for each scope that is asked for: it would take the place of another one under the same name.
        let scoped: BTreeSet<String> = scope.iter().cloned().collect();
        if !scope.is_empty() {
            packed_name =
                packed_name.filter(|_| file.scope.namespaces.iter().cloned().collect::<BTreeSet<_>>() == scoped);
            file.scope = Scope { namespaces: scope, ..file.scope };
        }
        let told = path.or(settings).unwrap_or_default();
        let policy = if let Some(bytes) = component {
            let inner = gate::Candidate { bytes: bytes.clone(), file: file.clone(), settings_from };
            let policy = admitted(loader, &told, inner)?;
            let id = policy.policy.id();
            (file.name, file.version) = (Some(id.name.clone()), Some(id.version.clone()));
            Some((policy, bytes))
        } else {
            let Some(name) = file.name.as_deref() else {
                let what = "says neither a component nor whose settings it has";
                bail!("{}: {what}: add `name`, or use --for", told.display());
            };
            let origin = settings_from.unwrap_or_else(|| written_in(&told));
            check(name, Layer::tree(origin, name, file.settings.clone()))?;
            None
        };
        let of = file.name.clone().unwrap_or_default();
        let usual = if policy.is_some() { format!("policy-{of}") } else { format!("policy-{of}-settings") };
        let usual = name_for(&usual, &scoped);
        let component = policy.as_ref().map(|(_, bytes)| bytes.as_slice());
        let packed = pack(&name.or(packed_name).unwrap_or(usual), &namespace, &file, component)?;
        Ok(Ready { file, policy: policy.map(|(policy, _)| policy), packed, is_placed })
    }
}

/// The usual name of a ConfigMap, for a scope that was asked for: no other scope has the same, since names of policies and
/// of namespaces have no dots.
fn name_for(usual: &str, scope: &BTreeSet<String>) -> String {
    let long: Vec<&str> = std::iter::once(usual).chain(scope.iter().map(String::as_str)).collect();
    let long = long.join(".");
    if long.len() <= LONGEST {
        return long;
    }
    let digest = Digest::of_json(&json!(scope));
    format!("{usual}.{}.namespaces.{}", scope.len(), &digest.hex()[..12])
}

impl Raw {
    /// What no ConfigMap says.
    fn unpacked(file: PolicyFile, component: Option<Vec<u8>>, settings_from: Option<Given>) -> Self {
        Self { file, component, settings_from, name: None, namespace: None }
    }
}

/// Whatever the file is.
fn read(path: &Path) -> anyhow::Result<Raw> {
    let named = || path.display().to_string();
    let bytes = reading::bytes(path, OBJECTS)?;
    let Some(text) = std::str::from_utf8(&bytes).ok().filter(|text| !text.starts_with('\0')) else {
        let Candidate { inner: gate::Candidate { bytes, file, settings_from }, .. } = Candidate::read(path)?;
        return Ok(Raw::unpacked(file, Some(bytes), settings_from));
    };
    if let Some(raw) = packed(&named(), text)? {
        return Ok(raw);
    }
    let file = PolicyFile::parse(text).with_context(named)?;
    Ok(Raw::unpacked(file, None, Some(written_in(path))))
}

/// The one package among the objects of a text; none if it has no objects.
fn packed(path: &str, text: &str) -> anyhow::Result<Option<Raw>> {
    // No namespace instead of the usual one: where none is said, whoever asks knows better.
    let (documents, mut errors) = input::parse(&path.into(), text, "");
    // A policy.yaml has no field of an object's.
    let is_no_object = |error: &InputError| matches!(error, InputError::NoObject { path: "" | "apiVersion", .. });
    if documents.is_empty() && errors.iter().all(is_no_object) {
        return Ok(None);
    }
    if let Some(last) = errors.pop() {
        for error in errors {
            complain("error", error);
        }
        return Err(last.into());
    }
    let mut config_maps = Vec::new();
    for document in documents.into_iter().filter(|document| document.identity.kind == "ConfigMap") {
        let mut map: ConfigMap = serde_json::from_value(document.object)
            .with_context(|| format!("{}: ConfigMap {}", document.origin, document.identity.name))?;
        map.metadata.namespace = map.metadata.namespace.filter(|namespace| !namespace.is_empty());
        config_maps.push(map);
    }
    let mut indexes = config_maps.iter().filter(|map| is_index(&map.metadata));
    let Some(index) = indexes.next() else {
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
    let (settings_from, namespace) = (Some(written_in(Path::new(path))), index.metadata.namespace.clone());
    Ok(Some(Raw { file, component, settings_from, name: Some(name), namespace }))
}

fn written_in(path: &Path) -> Given {
    Given::File(path.display().to_string())
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

/// Whether settings are for one of these policies; fails where they do not fit it, or where what it plans with them for
/// its own samples cannot be.
fn fits(loader: &Loader, there: &[Loaded], policy: &str, settings: Layer) -> anyhow::Result<bool> {
    let Some(loaded) = there.iter().rfind(|loaded| loaded.policy.id().name == policy) else { return Ok(false) };
    gate::try_settings(&loaded.policy, &[settings], &sample_cluster(), &loader.server())?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scope_has_a_name_of_its_own_whatever_its_order() {
        let named = |scope: &[&str]| {
            name_for("policy-agent-settings", &scope.iter().map(|place| (*place).to_owned()).collect())
        };
        assert_eq!(named(&[]), "policy-agent-settings");
        assert_eq!(named(&["team", "blue"]), "policy-agent-settings.blue.team");
        assert_ne!(named(&["a-b"]), named(&["a", "b"]));
        let many: Vec<String> = (0..40).map(|number| format!("team-{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let (all, fewer) = (named(&many), named(&many[1..]));
        assert!(all.len() < LONGEST && all.starts_with("policy-agent-settings.40.namespaces."), "{all}");
        assert_ne!(all, fewer);
    }
}
