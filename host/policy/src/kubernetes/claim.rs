//! Checks a PersistentVolumeClaim.

use super::{
    found::{Findings, shown},
    manifest_value::ManifestValue,
    quantity, scheduling,
};

/// Checks the template in a pod's ephemeral volume. From this template, Kubernetes creates a PersistentVolumeClaim for
/// each pod.
pub(super) fn template(at: &ManifestValue<'_>, found: &mut Findings) {
    if !at.is_there() {
        return found.add(at, "is required: the volume claim for each pod");
    }
    for (field, value) in at.field("metadata").entries() {
        if !matches!(field, "labels" | "annotations") {
            found.add(&value, "is not allowed in the template of a volume claim: remove it");
        }
    }
    found.labels(&at.field("metadata").field("labels"));
    spec(&at.field("spec"), found);
}

/// Checks the spec of a PersistentVolumeClaim.
pub(super) fn spec(at: &ManifestValue<'_>, found: &mut Findings) {
    const MODES: [&str; 4] = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"];
    let modes = at.field("accessModes");
    if modes.items().next().is_none() {
        found.add(&modes, format!("is required: at least one of {}", MODES.join(", ")));
    }
    modes.items().for_each(|mode| found.exactly_one_of(&mode, &MODES));
    let is_alone = |mode: &ManifestValue<'_>| mode.text() == "ReadWriteOncePod";
    if modes.items().any(|mode| is_alone(&mode)) && modes.items().any(|mode| !is_alone(&mode)) {
        found.add(&modes, "has ReadWriteOncePod together with another mode: remove one of the two");
    }
    let size = at.field("resources").field("requests").field("storage");
    if !size.is_there() {
        found.add(&size, "is required: an amount such as 1Gi");
    } else if quantity::check(&size, found) == Some(0) {
        found.add(&size, format!("{} is too little: request more than 0", shown(&size)));
    }
    scheduling::selector(&at.field("selector"), found);
    found.name_if_any(&at.field("storageClassName"));
    found.name_if_any(&at.field("volumeAttributesClassName"));
    found.exactly_one_of(&at.field("volumeMode"), &["Block", "Filesystem"]);
    let (one, other) = (at.field("dataSource"), at.field("dataSourceRef"));
    for source in [&one, &other].into_iter().filter(|source| source.is_there()) {
        filled_from(source, found);
    }
    let same = |field| one.text_of(field) == other.text_of(field);
    let differ = !(same("apiGroup") && same("kind") && same("name"));
    if one.is_there() && other.is_there() && (differ || !other.text_of("namespace").is_empty()) {
        found.add(&one, "differs from dataSourceRef: remove one of the two");
    }
}

fn filled_from(source: &ManifestValue<'_>, found: &mut Findings) {
    let (group, kind) = (source.field("apiGroup"), source.field("kind"));
    found.needs(&source.field("name"), "the name of the volume claim's data source");
    if found.needs(&kind, "the kind of the volume claim's data source")
        && group.text().is_empty()
        && kind.text() != "PersistentVolumeClaim"
    {
        found.add(&kind, format!("{} needs an apiGroup: only a PersistentVolumeClaim has no apiGroup", shown(&kind)));
    }
    found.name_if_any(&group);
    if !source.text_of("namespace").is_empty() {
        found.label(&source.field("namespace"));
    }
}
