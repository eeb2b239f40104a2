//! Compares the plan of an overlay with the plan of the layer below.
//!
//! An overlay may change the content of the children, but only the policy below decides which children exist and for
//! how long. If an overlay removed a child, the operator could delete data, and the policy below would report a wrong
//! status. So an overlay must not remove a child, or change a selector or a selected label. An overlay also must not
//! change the plan gates, the finalizer and the kept volume claims.
//!
//! The plan of the layer below may have privileges that the overlay has no permission for. If the overlay changed the
//! code that runs with a privilege, the overlay would get this privilege. So a privilege of the layer below stays
//! allowed only in a child that still runs the same code. For any other child, the overlay needs its own permission.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{GuardedManifest, Rule, breaches::Breaches, manifest, rules::Below, selectors::SelectedLabels};
use crate::{
    contract::{Plan, ResourceType},
    pods,
};

/// The fields of a pod spec that decide only where the pod runs, and how long its termination may take.
const SCHEDULING: [&str; 5] =
    ["affinity", "nodeSelector", "terminationGracePeriodSeconds", "tolerations", "topologySpreadConstraints"];
/// The kinds of objects whose content containers can read.
const CONTENT: [&str; 2] = ["ConfigMap", "Secret"];

/// The type and the name of a manifest.
type ManifestName = (ResourceType, String);

fn name_of(manifest: &Value) -> ManifestName {
    (ResourceType::of_object(manifest), manifest["metadata"]["name"].as_str().unwrap_or_default().to_owned())
}

/// Compares the manifests of an amended plan with the plan of the layer below.
pub(super) struct AmendedPlan<'a> {
    below: BTreeMap<ManifestName, &'a Value>,
    /// Whether the amended plan keeps all data in the ConfigMaps and Secrets of the layer below. Containers may read
    /// this data.
    has_same_content: bool,
}

impl<'a> AmendedPlan<'a> {
    pub(super) fn new(below: &Below<'a>, manifests: &[Value]) -> Self {
        let above: BTreeMap<_, _> = manifests.iter().map(|manifest| (name_of(manifest), manifest)).collect();
        let below: BTreeMap<_, _> = below.manifests.iter().map(|manifest| (name_of(manifest), manifest)).collect();
        let is_same = |(name, manifest): (&ManifestName, &&'a Value)| {
            !(name.0.group().is_empty() && CONTENT.contains(&name.0.kind.as_str()))
                || above.get(name).is_some_and(|above| runs_the_same(manifest, above))
        };
        let has_same_content = below.iter().all(is_same);
        Self { below, has_same_content }
    }

    /// Returns whether the plan of the layer below has exactly this manifest.
    pub(super) fn has(&self, manifest: &Value) -> bool {
        self.below.get(&name_of(manifest)) == Some(&manifest)
    }

    /// Returns the manifest of the layer below whose privileges this manifest keeps. Returns `None` if the overlay
    /// changed more of the manifest than labels, annotations and scheduling, or changed data that containers can read.
    pub(super) fn kept(&self, manifest: &Value) -> Option<&'a Value> {
        let below = self.below.get(&name_of(manifest)).copied();
        below.filter(|below| self.has_same_content && runs_the_same(below, manifest))
    }
}

/// Adds a breach for every part of the lower plan that the overlay must keep, but changed or removed.
pub(super) fn check(plan: &Plan, stages: &[GuardedManifest<'_, '_>], below: &Below<'_>, breaches: &mut Breaches) {
    let above: BTreeMap<_, _> = stages.iter().map(|stage| (name_of(stage.manifest), stage)).collect();
    let selected = SelectedLabels::of(below.manifests);
    for (i, manifest) in below.manifests.iter().enumerate() {
        let Some(GuardedManifest { path, manifest: now, .. }) = above.get(&name_of(manifest)) else {
            let path = format!("below {}", manifest::path(i, manifest));
            breaches.add(
                Rule::KeepsBelow,
                path,
                "is a child of the layer below: an overlay must not drop or rename it",
            );
            continue;
        };
        selected.check(path, manifest, now, breaches);
    }
    let Plan { manifests: _, origins: _, gates, env: _, notes, finalizer, kept, gates_hold, extra: _ } = plan;
    for (field, is_kept) in [
        ("gates", *gates == below.plan.gates),
        ("gates-hold", *gates_hold == below.plan.gates_hold),
        ("finalizer", *finalizer == below.plan.finalizer),
        ("kept", *kept == below.plan.kept),
    ] {
        if !is_kept {
            breaches.add(Rule::KeepsBelow, field, "belongs to the policy below: an overlay must not change it");
        }
    }
    if !below.plan.notes.iter().all(|note| notes.contains(note)) {
        breaches.add(Rule::KeepsBelow, "notes", "lacks a note of the layer below: an overlay may only add notes");
    }
}

/// Returns whether both manifests are equal apart from labels, annotations and scheduling.
fn runs_the_same(one: &Value, other: &Value) -> bool {
    one == other || bare(one) == bare(other)
}

/// Returns the manifest without labels, annotations and scheduling.
fn bare(manifest: &Value) -> Value {
    let mut bare = manifest.clone();
    strip(&mut bare);
    bare
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("labels");
                metadata.remove("annotations");
            }
            if pods::CONTAINERS.iter().any(|list| fields.get(*list).is_some_and(Value::is_array)) {
                for field in SCHEDULING {
                    fields.remove(field);
                }
            }
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}
