//! Checks the volumes that a container mounts.

use std::collections::BTreeSet;

use super::{
    found::{Found, shown},
    place::Place,
    volumes::Volumes,
};

/// Checks `volumeMounts` and `volumeDevices` of a container. `volumes` are the pod's volumes.
pub(super) fn check(container: &Place<'_>, volumes: &Volumes<'_>, found: &mut Found) {
    const HINT: &str = "add it to the pod's volumes";
    found.differ(&container.field("volumeMounts"), &[("mountPath", "")]);
    found.differ(&container.field("volumeDevices"), &[("devicePath", "")]);
    let is_privileged = container.field("securityContext").field("privileged").value() == true;
    for mount in container.list("volumeMounts") {
        let (name, path) = (mount.field("name"), mount.field("mountPath"));
        if found.needs(&name, "the name of a volume") && !volumes.all.contains(name.text()) {
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
        if found.needs(&name, "the name of a volume") && !volumes.all.contains(name.text()) {
            found.add(&name, format!("the pod has no volume {}: {HINT}", shown(&name)));
        }
        if volumes.all.contains(name.text()) && !volumes.devices.contains(name.text()) {
            found.add(&name, format!("volume {} is no device: only claims can be", shown(&name)));
        }
        found.needs(&path, "where the device is to appear");
        found.no_way_up(&path);
        if names.contains(name.text()) || paths.contains(path.text()) {
            found.add(&device, "is mounted as a directory, too: take out one of the two");
        }
    }
}
