//! Finds settings that lose their effect because a policy of another name replaces their policy. Settings, presets and
//! packages of settings apply only to the policy that they name.

use std::collections::{BTreeMap, BTreeSet};

use kaos_policy::{contract::ResourceType, policy::Policy};

use super::{
    answering::{PolicySet, Shipped},
    output::complain,
};
use crate::embedded::DEFAULTS;

/// Prints a note for each policy that has settings and that the package's policy would replace under another name.
/// These settings would lose their effect.
pub(super) fn tell(standing: &PolicySet, new: &Shipped) {
    let Some(policy) = &new.policy else { return };
    let name = &policy.id().name;
    for (other, settings) in left_behind(standing, new) {
        let settings = settings.into_iter().collect::<Vec<_>>().join(", ");
        complain(
            "note",
            format_args!(
                "{name} would answer instead of {other}, and settings for {other} do not apply to {name}: {settings}; to \
                 keep these settings, name your policy {other} too"
            ),
        );
    }
}

/// Prints a note for each default policy that `policy` replaces under another name.
pub(super) fn tell_of_defaults(policy: &Policy) {
    let name = &policy.id().name;
    for claim in &policy.descriptor().claims {
        let Some(default) = default_policy_of(&claim.primary) else { continue };
        if default != *name {
            complain(
                "note",
                format_args!(
                    "{name} answers instead of {default}, and settings for {default}, such as those of a preset, do not \
                     apply to {name}: run `policy plan` to see the effect; to keep the settings, name your policy \
                     {default} too"
                ),
            );
        }
    }
}

/// Returns the name of the default policy for a kind; `None` if the kind has no default policy.
fn default_policy_of(of: &ResourceType) -> Option<String> {
    let name = of.kind.to_lowercase();
    let is_default = of.group() == kaos_crds::GROUP
        && DEFAULTS.iter().any(|default| default.manifest.starts_with(&format!("name: {name}\n")));
    is_default.then_some(name)
}

/// Returns the policies that the package's policy would replace under another name, each with the sources of its
/// settings. Leaves out policies without settings.
fn left_behind(standing: &PolicySet, new: &Shipped) -> BTreeMap<String, BTreeSet<String>> {
    let mut left = BTreeMap::new();
    let Some(policy) = &new.policy else { return left };
    let name = |policy: &Policy| policy.id().name.clone();
    // If the same ConfigMap already contains a policy of this name, the package is only another version of this policy.
    let is_edition = |old: &&Shipped| old.source == new.source && old.policy.as_deref().map(name) == Some(name(policy));
    if standing.shipped.iter().any(|old| is_edition(&old)) {
        return left;
    }
    let kinds: BTreeSet<_> = policy.descriptor().claims.iter().map(|claim| &claim.primary).collect();
    let claims_one = |other: &&Policy| other.descriptor().claims.iter().any(|claim| kinds.contains(&claim.primary));
    let replaced: BTreeSet<String> =
        standing.policies().filter(claims_one).map(name).filter(|other| *other != name(policy)).collect();
    for other in replaced {
        let mut settings = BTreeSet::new();
        for layer in standing.shared().iter().filter(|layer| layer.policy.as_ref() == Some(&other)) {
            settings.insert(layer.origin.to_string());
        }
        for Shipped { source: (namespace, package), policy, file, .. } in &standing.shipped {
            if policy.is_none() && file.name.as_ref() == Some(&other) {
                settings.insert(format!("ConfigMap {namespace}/{package}"));
            }
        }
        if !settings.is_empty() {
            left.insert(other, settings);
        }
    }
    left
}
