//! Checks manifests against the known CRDs. Collects the kinds whose fields neither Kubernetes nor a known CRD defines.

use std::collections::BTreeSet;

use kaos_policy::{contract::ResourceType, kubernetes::is_known};
use serde_json::Value;

use crate::schema::{Admission, KnownCrds};

/// Returns the kinds of the manifests whose fields neither Kubernetes nor a known CRD defines.
pub(crate) fn unchecked(manifests: &[Value], crds: &KnownCrds) -> impl Iterator<Item = ResourceType> {
    let kinds = manifests.iter().map(ResourceType::of_object);
    kinds.filter(|of| !is_known(of) && crds.schema(of).is_none())
}

/// Names the kinds whose fields the checks do not know; `None` if there are no such kinds.
pub(crate) fn told(unchecked: &BTreeSet<ResourceType>) -> Option<String> {
    let kinds: Vec<String> = unchecked.iter().map(ToString::to_string).collect();
    let kinds = kinds.join(", ");
    (!unchecked.is_empty()).then(|| format!("the check does not know the fields of {kinds}: name the CRD with --crds"))
}

/// Returns the first reason why an API server with the known CRDs would refuse one of the manifests.
pub(crate) fn refused(manifests: &[Value], crds: &KnownCrds) -> Option<String> {
    manifests.iter().enumerate().find_map(|(index, manifest)| {
        let of = ResourceType::of_object(manifest);
        crds.schema(&of)?;
        let Admission { unknown, violations } = crds.admit(of.group(), &of.kind, &mut manifest.clone());
        let finding = unknown.into_iter().chain(violations).next()?;
        Some(format!("manifests[{index}] ({}) {}: {}", of.kind, finding.path, finding.message))
    })
}
