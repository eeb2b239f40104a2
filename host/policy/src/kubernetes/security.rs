//! Checks the security contexts of pods and containers.

use std::collections::BTreeSet;

use super::{found::Findings, manifest_value::ManifestValue};

/// The valid range of user and group IDs.
const IDS: (i64, i64) = (0, i32::MAX as i64);

/// Checks the security context of a container.
pub(super) fn of_container(at: &ManifestValue<'_>, shares_users: bool, found: &mut Findings) {
    common(at, found);
    let mount = at.field("procMount");
    found.exactly_one_of(&mount, &["Default", "Unmasked"]);
    if shares_users && mount.text() == "Unmasked" {
        found.add(&mount, "needs a pod with hostUsers: false");
    }
    let escalates = at.field("allowPrivilegeEscalation");
    if escalates.value() == false {
        let adds = |name| at.field("capabilities").list("add").any(|added| added.text() == name);
        if at.field("privileged").value() == true {
            found.add(&escalates, "is false although privileged is true: remove one of the two");
        }
        if adds("CAP_SYS_ADMIN") {
            found.add(&escalates, "is false although CAP_SYS_ADMIN is added: remove one of the two");
        }
    }
}

/// Checks the security context of a pod.
pub(super) fn of_pod(spec: &ManifestValue<'_>, found: &mut Findings) {
    let at = &spec.field("securityContext");
    common(at, found);
    found.between(&at.field("fsGroup"), IDS.0, IDS.1);
    for group in at.list("supplementalGroups") {
        found.between(&group, IDS.0, IDS.1);
    }
    found.exactly_one_of(&at.field("fsGroupChangePolicy"), &["OnRootMismatch", "Always"]);
    found.exactly_one_of(&at.field("supplementalGroupsPolicy"), &["Merge", "Strict"]);
    found.exactly_one_of(&at.field("seLinuxChangePolicy"), &["MountOption", "Recursive"]);
    let sysctls = at.field("sysctls");
    let mut seen = BTreeSet::new();
    for name in sysctls.items().map(|item| item.field("name")) {
        if !found.needs(&name, "the name of a kernel parameter") {
            continue;
        }
        if !is_sysctl(name.text()) {
            found.add(&name, "is not the name of a kernel parameter, such as net.core.somaxconn");
        }
        if !seen.insert(name.text()) {
            found.add(&name, "occurs twice: keep one");
        }
        for (field, is_its) in [("hostNetwork", is_of_network as fn(&str) -> bool), ("hostIPC", is_of_memory)] {
            if spec.field(field).value() == true && is_its(&name.text().replace('/', ".")) {
                found.add(&name, format!("belongs to the node if {field} is true: remove one of the two"));
            }
        }
    }
}

fn common(at: &ManifestValue<'_>, found: &mut Findings) {
    found.between(&at.field("runAsUser"), IDS.0, IDS.1);
    found.between(&at.field("runAsGroup"), IDS.0, IDS.1);
    for field in ["seccompProfile", "appArmorProfile"] {
        let profile = at.field(field);
        if !profile.is_there() {
            continue;
        }
        let (kind, file) = (profile.field("type"), profile.field("localhostProfile"));
        if found.needs(&kind, "Localhost, RuntimeDefault or Unconfined") {
            found.exactly_one_of(&kind, &["Localhost", "RuntimeDefault", "Unconfined"]);
        }
        match (kind.text() == "Localhost", file.is_there()) {
            (true, false) => found.add(&file, "is required for a profile of type Localhost"),
            (false, true) => found.add(&file, "is allowed only in a profile of type Localhost: remove it"),
            (true, true) if field == "seccompProfile" => found.path_below(&file),
            (true, true) if file.text().trim() != file.text() || file.text().is_empty() => {
                found.add(&file, "must be the name of a profile without blanks before or after it");
            }
            _ => {}
        }
    }
}

/// Returns whether a name consists of words with dots or slashes between them. Each word has lower-case letters, digits
/// and inner `-_`.
fn is_sysctl(name: &str) -> bool {
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_word = |word: &str| {
        word.starts_with(is_end) && word.ends_with(is_end) && word.chars().all(|c| is_end(c) || "-_".contains(c))
    };
    name.len() <= 253 && name.split(['.', '/']).all(is_word)
}

fn is_of_network(name: &str) -> bool {
    name.starts_with("net.")
}

/// Returns whether a kernel parameter belongs to the IPC namespace: shared memory, semaphores and message queues.
fn is_of_memory(name: &str) -> bool {
    const NAMES: [&str; 9] =
        ["sem", "shmall", "shmmax", "shmmni", "shm_rmid_forced", "shm", "msgmax", "msgmnb", "msgmni"];
    name.starts_with("fs.mqueue.") || name.strip_prefix("kernel.").is_some_and(|name| NAMES.contains(&name))
}
