//! Checks volumes of rare types. These volumes need drivers or servers outside of the cluster.

use super::{
    found::{Findings, shown},
    manifest_value::ManifestValue,
};
use crate::names::is_subdomain;

/// Checks the source of a volume of the type `kind`.
pub(super) fn check(kind: &str, source: &ManifestValue<'_>, found: &mut Findings) {
    for field in needed(kind) {
        found.needs(&source.field(field), "required to find the volume");
    }
    match kind {
        "csi" => csi(source, found),
        "cinder" => secret(&source.field("secretRef"), found),
        "nfs" => absolute(&source.field("path"), found),
        "gitRepo" => found.path_below(&source.field("directory")),
        "gcePersistentDisk" | "awsElasticBlockStore" => found.between(&source.field("partition"), 0, 255),
        "iscsi" => iscsi(source, found),
        "fc" => fibre(source, found),
        "cephfs" | "rbd" if source.list("monitors").next().is_none() => {
            found.add(&source.field("monitors"), "is required: at least one address");
        }
        "azureDisk" => azure(source, found),
        "flocker" => {
            let given = ["datasetName", "datasetUUID"].map(|field| !source.text_of(field).is_empty());
            if given[0] == given[1] {
                found.add(source, "must have one of datasetName and datasetUUID");
            }
            if source.text_of("datasetName").contains('/') {
                found.add(&source.field("datasetName"), "must not contain a slash");
            }
        }
        "quobyte" => {
            let registry = source.field("registry");
            let is_pair =
                |pair: &str| pair.rsplit_once(':').is_some_and(|(host, _)| !host.contains(':') || host.ends_with(']'));
            if !registry.text().is_empty() && !registry.text().split(',').all(is_pair) {
                found.add(&registry, format!("{} is not a host and a port: write host:port", shown(&registry)));
            }
            if source.text_of("tenant").len() > 64 {
                found.add(&source.field("tenant"), "has more than 64 characters");
            }
        }
        "storageos" => {
            for field in ["volumeName", "volumeNamespace"] {
                if !source.text_of(field).is_empty() {
                    found.label(&source.field(field));
                }
            }
            secret(&source.field("secretRef"), found);
        }
        "flexVolume" => {
            for (key, option) in source.field("options").entries() {
                let domain = format!(".{}", key.split('/').next().unwrap_or_default().to_lowercase());
                if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
                    found.add(&option, "is reserved for Kubernetes: choose another domain");
                }
            }
        }
        _ => {}
    }
}

/// Returns the text fields that a volume type requires.
fn needed(kind: &str) -> &'static [&'static str] {
    match kind {
        "awsElasticBlockStore" | "cinder" | "portworxVolume" => &["volumeID"],
        "azureDisk" => &["diskName", "diskURI"],
        "azureFile" => &["secretName", "shareName"],
        "csi" | "flexVolume" => &["driver"],
        "gcePersistentDisk" => &["pdName"],
        "gitRepo" => &["repository"],
        "glusterfs" => &["endpoints", "path"],
        "iscsi" => &["targetPortal", "iqn"],
        "nfs" => &["server", "path"],
        "photonPersistentDisk" => &["pdID"],
        "quobyte" => &["registry", "volume"],
        "rbd" => &["image"],
        "scaleIO" => &["gateway", "system", "volumeName"],
        "storageos" => &["volumeName"],
        "vsphereVolume" => &["volumePath"],
        _ => &[],
    }
}

fn csi(source: &ManifestValue<'_>, found: &mut Findings) {
    let driver = source.field("driver");
    if !driver.text().is_empty() && (driver.text().len() > 63 || !is_subdomain(&driver.text().to_lowercase())) {
        found.add(&driver, format!("{} is not the name of a driver, such as csi.example.com", shown(&driver)));
    }
    let reference = source.field("nodePublishSecretRef");
    secret(&reference, found);
    found.name_if_any(&reference.field("name"));
}

fn secret(reference: &ManifestValue<'_>, found: &mut Findings) {
    if reference.is_there() {
        found.needs(&reference.field("name"), "the Secret's name");
    }
}

fn absolute(path: &ManifestValue<'_>, found: &mut Findings) {
    if !path.text().is_empty() && !path.text().starts_with('/') {
        found.add(path, format!("{} is not an absolute path: begin with a slash", shown(path)));
    }
}

fn iscsi(source: &ManifestValue<'_>, found: &mut Findings) {
    for name in ["iqn", "initiatorName"].map(|field| source.field(field)) {
        let text = name.text();
        if !text.is_empty() && !["iqn", "eui", "naa"].iter().any(|start| text.starts_with(start)) {
            found.add(&name, format!("{} does not begin with iqn, eui or naa", shown(&name)));
        }
    }
    found.between(&source.field("lun"), 0, 255);
    let asks = |field| source.field(field).value() == true;
    if (asks("chapAuthDiscovery") || asks("chapAuthSession")) && !source.field("secretRef").is_there() {
        found.add(&source.field("secretRef"), "is required if CHAP is on");
    }
}

fn fibre(source: &ManifestValue<'_>, found: &mut Findings) {
    let (names, ids) = (source.list("targetWWNs").next().is_some(), source.list("wwids").next().is_some());
    if names == ids {
        found.add(source, "must have one of targetWWNs and wwids");
    }
    let number = source.field("lun");
    if names && !number.is_there() {
        found.add(&number, "is required together with targetWWNs: a number from 0 to 255");
    } else if names {
        found.between(&number, 0, 255);
    }
}

fn azure(source: &ManifestValue<'_>, found: &mut Findings) {
    let (kind, disk) = (source.field("kind"), source.field("diskURI"));
    found.exactly_one_of(&source.field("cachingMode"), &["None", "ReadOnly", "ReadWrite"]);
    found.exactly_one_of(&kind, &["Shared", "Dedicated", "Managed"]);
    let start = if kind.text() == "Managed" { "/subscriptions/" } else { "https://" };
    if !disk.text().is_empty() && !disk.text().starts_with(start) {
        found.add(&disk, format!("{} does not begin with {start}", shown(&disk)));
    }
}
