//! The packages that the demo installs while it runs: settings, and another component. Users install packages in the
//! same way, as ConfigMaps.

use std::collections::BTreeMap;

use anyhow::Context;
use kaos_policy::{
    contract::HOME,
    manifest::PolicyFile,
    settings::{Content, Layer},
};
use serde_json::Value;

use crate::{
    embedded::DEFAULTS,
    package::{Packed, PolicyCode, pack},
};

/// The `policy.yaml` in the package of the other component.
pub(super) const FILE: (&str, &str) =
    ("docs/examples/settings/team-policy.yaml", include_str!("../../../../../docs/examples/settings/team-policy.yaml"));

/// Packs settings as one package for each policy.
pub(super) fn settings(layers: Vec<Layer>) -> anyhow::Result<Vec<Packed>> {
    let mut trees: BTreeMap<String, Value> = BTreeMap::new();
    for layer in layers {
        if let (Some(policy), Content::Tree(settings)) = (layer.policy, layer.content) {
            json_patch::merge(trees.entry(policy).or_default(), &settings);
        }
    }
    let packed = trees
        .into_iter()
        .map(|(policy, settings)| settings_of(&PolicyFile { name: Some(policy), settings, ..PolicyFile::default() }));
    packed.collect()
}

/// Packs the settings of a `policy.yaml`.
pub(super) fn settings_of(file: &PolicyFile) -> anyhow::Result<Packed> {
    let policy = file.name.as_deref().unwrap_or_default();
    Ok(pack(&format!("policy-{policy}-settings"), HOME, file, None)?)
}

/// Packs a default policy as if it came from another build, with other bytes and another `policy.yaml`.
pub(super) fn component() -> anyhow::Result<Packed> {
    let (name, text) = FILE;
    let file = PolicyFile::parse(text).context(name)?;
    let named = |manifest: &str| PolicyFile::parse(manifest).is_ok_and(|embedded| embedded.name == file.name);
    let embedded = DEFAULTS.iter().find(|policy| named(policy.manifest));
    let component = embedded.with_context(|| format!("{name}: no default policy has this name"))?.component;
    let policy = file.name.clone().unwrap_or_default();
    Ok(pack(&format!("policy-{policy}"), HOME, &file, Some(&PolicyCode::component([component, BUILD].concat())))?)
}

/// A custom section of a Wasm file: id, length, length of the name, name, content. The demo appends this section to a
/// component, so that the component's digest changes.
const BUILD: &[u8] = b"\x00\x08\x05build2\x0a";

#[cfg(test)]
mod tests {
    use kaos_policy::gate;

    use super::*;
    use crate::{
        package::unpack,
        policies::{Candidate, ComponentOrigin, Loader, sample_cluster},
    };

    #[test]
    fn the_shipped_component_passes_the_gate_and_has_its_own_digest() {
        let loader = Loader::new(sample_cluster()).unwrap();
        let package = unpack(&component().unwrap().index, |_| None::<&k8s_openapi::api::core::v1::ConfigMap>).unwrap();
        let inner = gate::Candidate {
            bytes: package.component.unwrap().bytes.into_owned(),
            file: package.file,
            ..gate::Candidate::default()
        };
        let policy = loader.check(&Candidate { origin: ComponentOrigin::Embedded, inner }).result.unwrap();
        let own = loader.load(&[]).unwrap();
        let same = own.iter().find(|own| own.policy.id().name == policy.id().name).unwrap();
        assert_ne!(same.policy.id().digest, policy.id().digest);
    }
}
