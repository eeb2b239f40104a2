//! What is wrong with the volumes of a pod.

use std::collections::BTreeSet;

use super::{
    env,
    found::{Found, shown},
    place::Place,
    quantity,
};

/// The volumes of a pod. Gives the names that can be mounted.
pub(super) fn check<'a>(spec: &Place<'a>, found: &mut Found) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    found.differ(&spec.field("volumes"), &[("name", "")]);
    for volume in spec.list("volumes") {
        let name = volume.field("name");
        if found.needs(&name, "the volume's name") {
            found.label(&name);
        }
        names.insert(name.text());
        let sources: Vec<_> = volume.entries().filter(|(field, _)| *field != "name").collect();
        if sources.len() > 1 {
            let names: Vec<&str> = sources.iter().map(|(name, _)| *name).collect();
            found.add(&volume, format!("is filled from {} at once: keep one", names.join(" and ")));
        }
        for (kind, source) in sources {
            of_kind(kind, &source, found);
        }
    }
    names
}

fn of_kind(kind: &str, source: &Place<'_>, found: &mut Found) {
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
            let path = source.field("path");
            if found.needs(&path, "a path of the node") {
                found.no_way_up(&path);
            }
            const TYPES: [&str; 8] =
                ["", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"];
            found.exactly_one_of(&source.field("type"), &TYPES);
        }
        "nfs" => {
            found.needs(&source.field("server"), "the server's name");
            let path = source.field("path");
            if found.needs(&path, "a path of the server") && !path.text().starts_with('/') {
                found.add(&path, format!("{} is not an absolute path: begin with a slash", shown(&path)));
            }
        }
        "csi" => {
            found.needs(&source.field("driver"), "the driver's name");
        }
        "downwardAPI" => {
            found.mode(&source.field("defaultMode"));
            source.list("items").for_each(|item| file_of_pod(&item, found));
        }
        "projected" => projected(source, found),
        "image" => found.one_of(&source.field("pullPolicy"), &["Always", "IfNotPresent", "Never"]),
        "ephemeral" => {
            if !source.field("volumeClaimTemplate").is_there() {
                found.add(&source.field("volumeClaimTemplate"), "is required: the claim that each pod gets");
            }
        }
        _ => {
            for field in needed(kind) {
                found.needs(&source.field(field), "the volume is not found without it");
            }
        }
    }
}

/// Texts that sources have to have which few have a use for.
fn needed(kind: &str) -> &'static [&'static str] {
    match kind {
        "awsElasticBlockStore" | "cinder" => &["volumeID"],
        "azureDisk" => &["diskName", "diskURI"],
        "azureFile" => &["secretName", "shareName"],
        "flexVolume" => &["driver"],
        "gcePersistentDisk" => &["pdName"],
        "gitRepo" => &["repository"],
        "glusterfs" => &["endpoints", "path"],
        "iscsi" => &["targetPortal", "iqn"],
        "photonPersistentDisk" => &["pdID"],
        "portworxVolume" => &["volumeID"],
        "quobyte" => &["registry", "volume"],
        "rbd" => &["image"],
        "scaleIO" => &["gateway", "system", "volumeName"],
        "storageos" => &["volumeName"],
        "vsphereVolume" => &["volumePath"],
        _ => &[],
    }
}

/// A Secret or `ConfigMap` as files.
fn named<'a>(source: &Place<'a>, field: &'a str, what: &str, found: &mut Found) {
    found.needs(&source.field(field), what);
    found.mode(&source.field("defaultMode"));
    source.list("items").for_each(|item| key_as_file(&item, found));
}

fn key_as_file(item: &Place<'_>, found: &mut Found) {
    found.needs(&item.field("key"), "the key");
    let path = item.field("path");
    found.needs(&path, "the name of the file");
    found.new_path_below(&path);
    found.mode(&item.field("mode"));
}

/// A field or resource of the pod as a file.
fn file_of_pod(item: &Place<'_>, found: &mut Found) {
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

fn projected(volume: &Place<'_>, found: &mut Found) {
    found.mode(&volume.field("defaultMode"));
    let mut paths = BTreeSet::new();
    let mut once = |path: &Place<'_>, found: &mut Found| {
        if !path.text().is_empty() && !paths.insert(path.text().to_owned()) {
            found.add(path, format!("{} is there twice: two sources would write the same file", shown(path)));
        }
    };
    for source in volume.list("sources") {
        if source.entries().count() > 1 {
            found.add(&source, "has more than one source: make an item of each");
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

/// `volumeMounts` and `volumeDevices` of a container, of a pod with these volumes.
pub(super) fn mounts(container: &Place<'_>, volumes: &BTreeSet<&str>, found: &mut Found) {
    const HINT: &str = "add it to the pod's volumes";
    found.differ(&container.field("volumeMounts"), &[("mountPath", "")]);
    found.differ(&container.field("volumeDevices"), &[("devicePath", "")]);
    let is_privileged = container.field("securityContext").field("privileged").value() == true;
    for mount in container.list("volumeMounts") {
        let (name, path) = (mount.field("name"), mount.field("mountPath"));
        if found.needs(&name, "the name of a volume") && !volumes.contains(name.text()) {
            found.add(&name, format!("the pod has no volume {}: {HINT}", shown(&name)));
        }
        found.needs(&path, "where the volume is to appear");
        let (below, expanded) = (mount.field("subPath"), mount.field("subPathExpr"));
        found.path_below(&below);
        found.path_below(&expanded);
        if !below.text().is_empty() && !expanded.text().is_empty() {
            found.add(&expanded, "stands beside subPath: take out one of the two");
        }
        let propagation = mount.field("mountPropagation");
        found.exactly_one_of(&propagation, &["None", "HostToContainer", "Bidirectional"]);
        if propagation.text() == "Bidirectional" && !is_privileged {
            found.add(&propagation, "is only for privileged containers: write HostToContainer, or leave it out");
        }
        let recursive = mount.field("recursiveReadOnly");
        found.exactly_one_of(&recursive, &["Disabled", "IfPossible", "Enabled"]);
        if matches!(recursive.text(), "IfPossible" | "Enabled") {
            if mount.field("readOnly").value() != true {
                found.add(&recursive, "is only for a mount that is readOnly");
            }
            if !matches!(propagation.text(), "" | "None") {
                found.add(&recursive, "does not go with mountPropagation");
            }
        }
    }
    let mounted = |field: &str| container.list("volumeMounts").map(|mount| mount.text_of(field)).collect();
    let (names, paths): (BTreeSet<&str>, BTreeSet<&str>) = (mounted("name"), mounted("mountPath"));
    for device in container.list("volumeDevices") {
        let (name, path) = (device.field("name"), device.field("devicePath"));
        if found.needs(&name, "the name of a volume") && !volumes.contains(name.text()) {
            found.add(&name, format!("the pod has no volume {}: {HINT}", shown(&name)));
        }
        found.needs(&path, "where the device is to appear");
        found.no_way_up(&path);
        if names.contains(name.text()) || paths.contains(path.text()) {
            found.add(&device, "is mounted as a directory, too: take out one of the two");
        }
    }
}
