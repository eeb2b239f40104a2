//! Reads and checks the package that the user wants to install: a component, packed ConfigMaps, or only settings. Every
//! command checks the package in the same way as the operator in a cluster.

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
    settings::{Layer, Origin},
};
use serde_json::{Value, json};

use super::{
    answering::{PLANNED, Shipped},
    held::claims_of,
    output::complain,
    package_name::{Kustomized, kustomized, usual},
};
use crate::{
    catalogue::{Age, Grantable, reach},
    input::{self, InputError},
    package::{Package, Packed, PolicyCode, is_chunk, is_index, pack, unpack},
    policies::{Candidate, ComponentOrigin, Loaded, Loader, is_script, sample_cluster},
    reading::{self, OBJECTS},
};

/// Maximum length in bytes of a ConfigMap name that lists the namespaces of the scope. Within this limit, the name of
/// the revision has room for the ConfigMap's name and a suffix.
const LONGEST: usize = 160;

/// Arguments that name the package and its contents.
#[derive(Debug, Clone, Args)]
pub(super) struct Shipment {
    /// A component or a script, with its policy.yaml in the same directory; ConfigMaps that `policy pack` printed; or a
    /// policy.yaml with settings only
    #[arg(value_name = "X.wasm|X.js|FILE.yaml", required_unless_present = "policy")]
    file: Option<PathBuf>,
    /// File with settings as YAML, instead of the settings in policy.yaml
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// Policy to which the settings belong, if the package contains only settings
    #[arg(long = "for", value_name = "POLICY", conflicts_with = "file", requires = "settings")]
    policy: Option<String>,
    /// Namespaces in which the package applies, instead of the namespaces in policy.yaml
    #[arg(long, value_delimiter = ',', value_name = "A,B", value_parser = super::namespace)]
    scope: Vec<String>,
    /// Name of the ConfigMap; default: the name in the kustomization.yaml in the same directory, if it generates the
    /// package; otherwise policy-<name>, or policy-<name>-settings for settings only, followed by the namespaces of
    /// --scope
    #[arg(long)]
    name: Option<String>,
}

/// A checked package.
pub(super) struct Ready {
    /// The `policy.yaml` of the package.
    pub(super) file: PolicyFile,
    /// The component that passed the gate; `None` if the package contains only settings.
    pub(super) policy: Option<Loaded>,
    /// The file with the user's settings, if the package contains only settings.
    pub(super) written_in: Option<Origin>,
    /// The ConfigMaps of the package.
    pub(super) packed: Packed,
    /// Whether the user gave the name or the scope of the package in flags.
    pub(super) is_placed: bool,
}

impl Ready {
    /// Converts the package for the simulation of an operator in namespace `home` that started with the policies `own`.
    /// Fails if the package's grants or claims exceed `grantable`, or if the package's namespace does not permit its
    /// scope.
    pub(super) fn shipped(self, home: &str, grantable: &Grantable, own: &[Loaded]) -> anyhow::Result<Shipped> {
        let Self { file, policy, written_in, packed, is_placed: _ } = self;
        let metadata = packed.index.metadata;
        let (namespace, name) = (metadata.namespace.unwrap_or_default(), metadata.name.unwrap_or_default());
        grantable.covers_grants(&file.grants)?;
        reach(&file, &namespace, home)?;
        if let Some(loaded) = &policy {
            grantable.covers_policy(&loaded.policy.descriptor().claims, namespace == home, claims_of(own))?;
        }
        let age = Age::new(None, namespace.clone(), name.clone());
        let (policy, since) = (policy.map(|loaded| loaded.policy), Some(Timestamp::MAX));
        let source = (namespace, name);
        Ok(Shipped {
            revision: PLANNED.into(),
            source,
            policy,
            file,
            written_in,
            age,
            since,
            predecessor: None,
            stage: None,
        })
    }
}

/// Chooses the namespace of the ConfigMaps: from the flag, else from the packed file, else the usual namespace. Fails
/// if the flag and the file differ, because the user then probably made a mistake.
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

/// A package before its checks.
struct Raw {
    file: PolicyFile,
    component: Option<PolicyCode>,
    /// The file with the user's settings; `None` if the settings do not come from a file.
    settings_from: Option<Origin>,
    /// Name and namespace in the metadata of packed ConfigMaps. The name can also be in the kustomization.
    name: Option<String>,
    namespace: Option<String>,
    /// The kustomization from which the name comes.
    kustomization: Option<PathBuf>,
}

impl Shipment {
    /// Reads and checks the package. `place` chooses the namespace of the ConfigMaps, given the namespace of a packed
    /// file. Checks settings only if they are for a default policy: the operator in the cluster checks settings for any
    /// other policy.
    pub(super) fn ready(
        self,
        loader: &Loader,
        place: impl FnOnce(Option<&str>) -> anyhow::Result<String>,
    ) -> anyhow::Result<Ready> {
        self.checked(loader, place, |policy, settings| {
            if !fits(loader, policy, settings)? {
                let later = "is not a default policy: the operator checks these settings in the cluster";
                complain("note", format_args!("policy {policy} {later}"));
            }
            Ok(())
        })
    }

    /// Like [`Self::ready`], but does not check settings. The caller tries the settings on the policies that answer in
    /// the package's scope.
    pub(super) fn ready_untried(
        self,
        loader: &Loader,
        place: impl FnOnce(Option<&str>) -> anyhow::Result<String>,
    ) -> anyhow::Result<Ready> {
        self.checked(loader, place, |_, _| Ok(()))
    }

    /// Like [`Self::ready`], but calls `check` with the name of the policy and the settings if the package contains
    /// only settings.
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
        let Raw { mut file, component, mut settings_from, name: mut packed_name, namespace, kustomization } = raw;
        if let (Some(name), Some(own), Some(kustomization)) = (&name, &packed_name, &kustomization)
            && name != own
        {
            complain(
                "note",
                format_args!(
                    "{}: names the ConfigMap {own}, so `kubectl apply -k` would install the policy a second time: \
                     write {name} there too",
                    kustomization.display()
                ),
            );
        }
        let namespace = place(namespace.as_deref())?;
        if let Some(path) = &settings {
            file.settings = tree(path)?;
            settings_from = Some(written_in(path));
        }
        // Give the ConfigMap of each requested scope its own name: with an equal name, the package would replace the
        // package of another scope.
        let scoped: BTreeSet<String> = scope.iter().cloned().collect();
        if !scope.is_empty() {
            packed_name =
                packed_name.filter(|_| file.scope.namespaces.iter().cloned().collect::<BTreeSet<_>>() == scoped);
            file.scope = Scope { namespaces: scope, ..file.scope };
        }
        let told = path.or(settings).unwrap_or_default();
        let mut only_settings_in = None;
        let policy = if let Some(code) = component {
            let PolicyCode { form, bytes } = code.clone();
            let inner = gate::Candidate { form, bytes: bytes.into_owned(), file: file.clone(), settings_from };
            let policy = admitted(loader, &told, inner)?;
            let id = policy.policy.id();
            (file.name, file.version) = (Some(id.name.clone()), Some(id.version.clone()));
            Some((policy, code))
        } else {
            let Some(name) = file.name.as_deref() else {
                let what = "has no `name`: a package without a component must name the policy of its settings";
                bail!("{}: {what}: add `name`, or use --for", told.display());
            };
            let origin = settings_from.unwrap_or_else(|| written_in(&told));
            check(name, Layer::tree(origin.clone(), name, file.settings.clone()))?;
            only_settings_in = Some(origin);
            None
        };
        let of = file.name.clone().unwrap_or_default();
        let usual = if policy.is_some() { usual(&of) } else { format!("{}-settings", usual(&of)) };
        let usual = name_for(&usual, &scoped);
        let code = policy.as_ref().map(|(_, code)| code);
        let packed = pack(&name.or(packed_name).unwrap_or(usual), &namespace, &file, code)?;
        let policy = policy.map(|(policy, _)| policy);
        Ok(Ready { file, policy, written_in: only_settings_in, packed, is_placed })
    }
}

/// Returns the default name of a ConfigMap for a requested scope. Different scopes get different names, because names
/// of policies and of namespaces contain no dots.
pub(super) fn name_for(usual: &str, scope: &BTreeSet<String>) -> String {
    let long: Vec<&str> = std::iter::once(usual).chain(scope.iter().map(String::as_str)).collect();
    let long = long.join(".");
    if long.len() <= LONGEST {
        return long;
    }
    let digest = Digest::of_json(&json!(scope));
    format!("{usual}.{}.namespaces.{}", scope.len(), &digest.hex()[..12])
}

impl Raw {
    /// Returns a package without the metadata of a ConfigMap.
    fn unpacked(file: PolicyFile, component: Option<PolicyCode>, settings_from: Option<Origin>) -> Self {
        Self { file, component, settings_from, name: None, namespace: None, kustomization: None }
    }
}

/// Reads a file that contains a component, a script, packed ConfigMaps, or a `policy.yaml`.
fn read(path: &Path) -> anyhow::Result<Raw> {
    let named = || path.display().to_string();
    let bytes = reading::bytes(path, OBJECTS)?;
    let text = std::str::from_utf8(&bytes).ok().filter(|text| !text.starts_with('\0') && !is_script(path));
    let Some(text) = text else {
        let Candidate { inner: gate::Candidate { form, bytes, file, settings_from }, .. } = Candidate::read(path)?;
        let raw = Raw::unpacked(file, Some(PolicyCode { form, bytes: bytes.into() }), settings_from);
        let Some(Kustomized { path, name }) = kustomized(path)? else { return Ok(raw) };
        return Ok(Raw { name: Some(name), kustomization: Some(path), ..raw });
    };
    if let Some(raw) = packed(&named(), text)? {
        return Ok(raw);
    }
    let file = PolicyFile::parse(text).with_context(named)?;
    Ok(Raw::unpacked(file, None, Some(written_in(path))))
}

/// Finds the only package among the objects of a text. Returns `None` if the text has no objects.
fn packed(path: &str, text: &str) -> anyhow::Result<Option<Raw>> {
    // The default namespace is empty, so that the caller sees whether the file names a namespace.
    let (documents, mut errors) = input::parse(&path.into(), text, "");
    // A `policy.yaml` is not an object: it lacks the fields of an object.
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
            "{path}: no ConfigMap in this file has the label {}: name a file that `policy pack` printed",
            crate::package::LABEL
        );
    };
    if indexes.next().is_some() {
        bail!("{path}: contains several packages: name a file with one package");
    }
    let chunk = |name: &str| {
        config_maps.iter().find(|map| is_chunk(&map.metadata) && map.metadata.name.as_deref() == Some(name))
    };
    let Package { name, file, component, .. } = unpack(index, chunk).with_context(|| path.to_owned())?;
    let (settings_from, namespace) = (Some(written_in(Path::new(path))), index.metadata.namespace.clone());
    Ok(Some(Raw { file, component, settings_from, name: Some(name), namespace, kustomization: None }))
}

fn written_in(path: &Path) -> Origin {
    Origin::File(path.display().to_string())
}

fn tree(path: &Path) -> anyhow::Result<Value> {
    let tree = input::document(path)?;
    if !tree.is_object() {
        bail!("{}: contains no settings: write the policy's settings as YAML fields", path.display());
    }
    Ok(tree)
}

fn admitted(loader: &Loader, path: &Path, inner: gate::Candidate) -> anyhow::Result<Loaded> {
    let candidate = Candidate { origin: ComponentOrigin::File(path.to_owned()), inner };
    let policy = loader.check(&candidate).result.with_context(|| path.display().to_string())?;
    Ok(Loaded { origin: candidate.origin, policy, settings: candidate.inner.file.settings })
}

/// Returns whether the settings are for a default policy. Fails if the settings do not fit the policy, or if the
/// policy's plans for its own samples are invalid with the settings.
fn fits(loader: &Loader, policy: &str, settings: Layer) -> anyhow::Result<bool> {
    let there = loader.load(&[])?;
    let Some(loaded) = there.iter().rfind(|loaded| loaded.policy.id().name == policy) else { return Ok(false) };
    gate::try_settings(&loaded.policy, &[settings], &sample_cluster(), &loader.server())?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scope_has_its_own_name_regardless_of_its_order() {
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
