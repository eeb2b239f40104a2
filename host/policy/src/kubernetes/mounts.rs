//! Checks the volumes that a container mounts.

use std::collections::BTreeSet;

use super::{
    found::{Findings, shown},
    manifest_value::ManifestValue,
    volumes::Volumes,
};

/// Checks `volumeMounts` and `volumeDevices` of a container. `volumes` are the pod's volumes.
pub(super) fn check(container: &ManifestValue<'_>, volumes: &Volumes<'_>, found: &mut Findings) {
    const HINT: &str = "add it to the pod's volumes";
    found.differ(&container.field("volumeMounts"), &[("mountPath", "")]);
    found.differ(&container.field("volumeDevices"), &[("devicePath", "")]);
    let is_privileged = container.field("securityContext").field("privileged").value() == true;
    for mount in container.list("volumeMounts") {
        let (name, path) = (mount.field("name"), mount.field("mountPath"));
        if found.needs(&name, "the name of a volume") && !volumes.all.contains(name.text()) {
            found.add(&name, format!("the pod has no volume {}: {HINT}", shown(&name)));
        }
        found.needs(&path, "the path of the mount in the container");
        let (below, expanded) = (mount.field("subPath"), mount.field("subPathExpr"));
        found.path_below(&below);
        found.path_below(&expanded);
        if !below.text().is_empty() && !expanded.text().is_empty() {
            found.add(&expanded, "is present together with subPath: remove one of the two");
        }
        let propagation = mount.field("mountPropagation");
        found.exactly_one_of(&propagation, &["None", "HostToContainer", "Bidirectional"]);
        if propagation.text() == "Bidirectional" && !is_privileged {
            found.add(&propagation, "is allowed in privileged containers only: write HostToContainer, or remove it");
        }
        let recursive = mount.field("recursiveReadOnly");
        found.exactly_one_of(&recursive, &["Disabled", "IfPossible", "Enabled"]);
        if matches!(recursive.text(), "IfPossible" | "Enabled") {
            if mount.field("readOnly").value() != true {
                found.add(&recursive, "is allowed only if the mount is readOnly");
            }
            if !matches!(propagation.text(), "" | "None") {
                found.add(&recursive, "cannot be combined with mountPropagation");
            }
        }
    }
    let mounted = |field: &str| container.list("volumeMounts").map(|mount| mount.text_of(field)).collect();
    let (names, paths): (BTreeSet<&str>, BTreeSet<&str>) = (mounted("name"), mounted("mountPath"));
    for device in container.list("volumeDevices") {
        let (name, path) = (device.field("name"), device.field("devicePath"));
        if found.needs(&name, "the name of a volume") && !volumes.all.contains(name.text()) {
            found.add(&name, format!("the pod has no volume {}: {HINT}", shown(&name)));
        }
        if volumes.all.contains(name.text()) && !volumes.devices.contains(name.text()) {
            found.add(&name, format!("volume {} is not a device: only volume claims can be devices", shown(&name)));
        }
        found.needs(&path, "the path of the device in the container");
        found.no_way_up(&path);
        if names.contains(name.text()) || paths.contains(path.text()) {
            found.add(&device, "is also mounted as a directory: remove one of the two");
        }
    }
}
