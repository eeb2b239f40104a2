//! Finds the volume claims whose size the upgrade changes. KAOS's operator ignored every change of the size.

use kaos_policy::{contract::Reference, render::Verdict};
use serde_json::Value;

use super::{
    report::{Sort, UpgradeFinding},
    rolls::live,
};
use crate::{input::Document, offline::Entry};

/// The kind of a volume claim.
const KIND: &str = "PersistentVolumeClaim";

/// Returns a note about each volume claim of an object that the upgrade makes larger. If an object asks for a smaller
/// size, the policy refuses the object, and another finding reports the refusal.
pub(super) fn findings(object: &Document, entry: &Entry, documents: &[Document]) -> Vec<UpgradeFinding> {
    let Verdict::Planned(planned) = &entry.rendered.verdict else { return Vec::new() };
    let finding = |wanted: &Value| {
        let (before, after) = (size(live(wanted, documents)?)?, size(wanted)?);
        let Reference { name, .. } = Reference::of_object(wanted);
        let message = format!("{KIND} {name} grows from {before} to {after}, which KAOS ignored");
        let remedy = format!(
            "if you do not want this, set the size in the object to {before} before the upgrade, because no volume claim \
             becomes smaller; otherwise check that its StorageClass has allowVolumeExpansion: true"
        );
        let is_same = kaos_amounts::same(before, after);
        (!is_same).then(|| UpgradeFinding::new(Sort::Note, object.identity.to_string(), message, remedy))
    };
    planned.manifests.iter().filter(|wanted| wanted["kind"] == KIND).filter_map(finding).collect()
}

fn size(claim: &Value) -> Option<&str> {
    claim["spec"]["resources"]["requests"]["storage"].as_str()
}
