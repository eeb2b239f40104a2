//! Checks the volumes of a pod.

use std::collections::BTreeSet;

use super::{
    claim, drivers, env,
    found::{Findings, shown},
    manifest_value::ManifestValue,
    quantity,
};

/// The names of a pod's volumes.
#[derive(Default)]
pub(super) struct Volumes<'a> {
    /// The names of all volumes of the pod.
    pub(super) all: BTreeSet<&'a str>,
    /// The volumes that a container can use as block devices.
    pub(super) devices: BTreeSet<&'a str>,
}

/// Checks the volumes of a pod, and returns their names.
pub(super) fn check<'a>(spec: &ManifestValue<'a>, found: &mut Findings) -> Volumes<'a> {
    let mut names = Volumes::default();
    found.differ(&spec.field("volumes"), &[("name", "")]);
    for volume in spec.list("volumes") {
        let name = volume.field("name");
        if found.needs(&name, "the volume's name") {
            found.label(&name);
        }
        names.all.insert(name.text());
        if volume.field("persistentVolumeClaim").is_there() || volume.field("ephemeral").is_there() {
            names.devices.insert(name.text());
        }
        let sources: Vec<_> = volume.entries().filter(|(field, _)| *field != "name").collect();
        if sources.len() > 1 {
            let names: Vec<&str> = sources.iter().map(|(name, _)| *name).collect();
            found.add(&volume, format!("has the sources {}: keep one", names.join(" and ")));
        }
        for (kind, source) in sources {
            of_kind(kind, &source, found);
        }
    }
    names
}

fn of_kind(kind: &str, source: &ManifestValue<'_>, found: &mut Findings) {
    match kind {
        "emptyDir" => {
            let limit = source.field("sizeLimit");
            if limit.is_there() {
                quantity::check(&limit, found);
            }
        }
        "secret" => named(source, "secretName", "the Secret's name", found),
        "configMap" => named(source, "name", "the ConfigMap's name", found),
        "persistentVolumeClaim" => {
            found.needs(&source.field("claimName"), "the claim's name");
        }
        "hostPath" => {
            const TYPES: [&str; 8] =
                ["", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"];
            let path = source.field("path");
            if found.needs(&path, "a path of the node") {
                found.no_way_up(&path);
            }
            found.exactly_one_of(&source.field("type"), &TYPES);
        }
        "downwardAPI" => {
            found.mode(&source.field("defaultMode"));
            source.list("items").for_each(|item| file_of_pod(&item, found));
        }
        "projected" => projected(source, found),
        "image" => found.one_of(&source.field("pullPolicy"), &["Always", "IfNotPresent", "Never"]),
        "ephemeral" => claim::template(&source.field("volumeClaimTemplate"), found),
        _ => drivers::check(kind, source, found),
    }
}

/// Checks a volume that contains the keys of a Secret or a `ConfigMap` as files.
fn named<'a>(source: &ManifestValue<'a>, field: &'a str, what: &str, found: &mut Findings) {
    found.needs(&source.field(field), what);
    found.mode(&source.field("defaultMode"));
    source.list("items").for_each(|item| key_as_file(&item, found));
}

fn key_as_file(item: &ManifestValue<'_>, found: &mut Findings) {
    found.needs(&item.field("key"), "the key");
    let path = item.field("path");
    found.needs(&path, "the name of the file");
    found.new_path_below(&path);
    found.mode(&item.field("mode"));
}

/// Checks an item of `downwardAPI`. The item describes a file with the value of a field or a resource of the pod.
fn file_of_pod(item: &ManifestValue<'_>, found: &mut Findings) {
    let path = item.field("path");
    found.needs(&path, "the name of the file");
    found.new_path_below(&path);
    found.mode(&item.field("mode"));
    let (field, resource) = (item.field("fieldRef"), item.field("resourceFieldRef"));
    match (field.is_there(), resource.is_there()) {
        (true, true) => found.add(item, "has both fieldRef and resourceFieldRef: keep one"),
        (false, false) => found.add(item, "must have one of fieldRef and resourceFieldRef"),
        (true, false) => env::file_field(&field, found),
        (false, true) => env::pod_resource(&resource, true, found),
    }
}

fn projected(volume: &ManifestValue<'_>, found: &mut Findings) {
    found.mode(&volume.field("defaultMode"));
    let mut paths = BTreeSet::new();
    let mut once = |path: &ManifestValue<'_>, found: &mut Findings| {
        if !path.text().is_empty() && !paths.insert(path.text().to_owned()) {
            found.add(path, format!("{} occurs twice: two sources would write the same file", shown(path)));
        }
    };
    for source in volume.list("sources") {
        if source.entries().count() > 1 {
            found.add(&source, "has more than one source: write an item for each source");
        }
        for (field, what) in [("secret", "the Secret's name"), ("configMap", "the ConfigMap's name")] {
            let from = source.field(field);
            if from.is_there() {
                found.needs(&from.field("name"), what);
                for item in from.list("items") {
                    key_as_file(&item, found);
                    once(&item.field("path"), found);
                }
            }
        }
        for item in source.field("downwardAPI").list("items") {
            file_of_pod(&item, found);
            once(&item.field("path"), found);
        }
        let token = source.field("serviceAccountToken");
        if token.is_there() {
            found.between(&token.field("expirationSeconds"), 600, 1 << 32);
            let path = token.field("path");
            found.needs(&path, "the name of the file");
            found.new_path_below(&path);
        }
    }
}
