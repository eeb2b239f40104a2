//! What the demo ships while it runs: settings, and another component, as the ConfigMaps that everybody ships them in.

use anyhow::Context;
use kaos_policy::manifest::PolicyFile;
use serde_json::Value;

use crate::{
    embedded::DEFAULTS,
    package::{Packed, pack},
};

/// Where the operator of the demo lives.
pub(super) const HOME: &str = "kaos-system";

/// What comes with the component.
pub(super) const FILE: (&str, &str) =
    ("docs/examples/settings/team-policy.yaml", include_str!("../../../../../docs/examples/settings/team-policy.yaml"));

/// Settings for each policy that a document has some for.
pub(super) fn settings(document: &Value) -> anyhow::Result<Vec<Packed>> {
    let of_policies = document.as_object().into_iter().flatten();
    let packed = of_policies.map(|(policy, settings)| {
        let file = PolicyFile { name: Some(policy.clone()), settings: settings.clone(), ..PolicyFile::default() };
        Ok(pack(&format!("policy-{policy}-settings"), HOME, &file, None)?)
    });
    packed.collect()
}

/// Another component: what a policy of the binary would be after another build, with other bytes and another
/// `policy.yaml`.
pub(super) fn component() -> anyhow::Result<Packed> {
    let (name, text) = FILE;
    let file = PolicyFile::parse(text).context(name)?;
    let named = |manifest: &str| PolicyFile::parse(manifest).is_ok_and(|embedded| embedded.name == file.name);
    let embedded = DEFAULTS.iter().find(|policy| named(policy.manifest));
    let component = embedded.with_context(|| format!("{name}: there is no embedded policy of this name"))?.component;
    let policy = file.name.clone().unwrap_or_default();
    Ok(pack(&format!("policy-{policy}"), HOME, &file, Some(&[component, BUILD].concat()))?)
}

/// A custom section: its id, its length, the length of its name, its name, its content.
const BUILD: &[u8] = b"\x00\x08\x05build2\x0a";
