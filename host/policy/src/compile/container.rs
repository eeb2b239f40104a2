//! The memory limit of the container that the program runs in.

use std::fs;

/// The environment variable with the limit in bytes. The chart sets this variable by the downward API. The program
/// needs this variable if the whole pod has a limit: a container with its own cgroup namespace cannot read the control
/// group of its pod.
const VARIABLE: &str = "OPERATOR_MEMORY_LIMIT";
/// The folder of control groups of version 2. The root group of a machine has no limit file.
const UNIFIED: &str = "/sys/fs/cgroup";
/// The file with the limit of the process's own control group, in version 1 of control groups.
const LEGACY: &str = "/sys/fs/cgroup/memory/memory.limit_in_bytes";
/// The statistics file of version 1, and the name of the line that contains the lowest limit of the process's own group
/// and of all groups above this group.
const LEGACY_ALL: (&str, &str) = ("/sys/fs/cgroup/memory/memory.stat", "hierarchical_memory_limit");
/// The file that shows the path of this process's own control group.
const OWN: &str = "/proc/self/cgroup";

/// A larger number is no limit: version 1 of control groups shows such a number for a container without a limit.
const LARGEST: u64 = 1 << 50;

/// Returns the number of bytes that this container can use at most: the lowest limit that the container can read.
/// Returns `None` if the container can read no limit.
pub fn memory() -> Option<u64> {
    lowest(|file| fs::read_to_string(file).ok(), std::env::var(VARIABLE).ok().as_deref())
}

/// Returns the lowest of the limits in the control group files and in `variable`, or `None` if there is no limit.
fn lowest(read: impl Fn(&str) -> Option<String>, variable: Option<&str>) -> Option<u64> {
    let number = |text: &str| text.trim().parse::<u64>().ok().filter(|bytes| (1..=LARGEST).contains(bytes));
    let groups = groups(read(OWN).as_deref().unwrap_or_default());
    let files = groups.iter().map(|group| format!("{UNIFIED}{group}/memory.max")).chain([LEGACY.to_owned()]);
    let limits = files.filter_map(|file| number(&read(&file)?));
    let (statistics, line) = LEGACY_ALL;
    let all = read(statistics).and_then(|text| text.lines().find_map(|it| number(it.strip_prefix(line)?)));
    limits.chain(all).chain(variable.and_then(number)).min()
}

/// Returns the path of the process's own control group (version 2), and the paths of all groups above this group.
fn groups(own: &str) -> Vec<String> {
    let mut groups = vec![String::new()];
    let own = own.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default();
    // Stop at `..`: a path with `..` leads out of the cgroup namespace, and the process cannot read such a group.
    for name in own.split('/').filter(|name| !name.is_empty()).take_while(|name| *name != "..") {
        let above = groups.last().cloned().unwrap_or_default();
        groups.push(format!("{above}/{name}"));
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lowest limit in these files and this variable, or `None` if they contain no limit.
    fn of(files: &[(&str, &str)], variable: Option<&str>) -> Option<u64> {
        let read = |file: &str| files.iter().find(|(name, _)| *name == file).map(|(_, content)| (*content).to_owned());
        lowest(read, variable)
    }

    #[test]
    fn limits_of_both_versions_of_control_groups_are_read() {
        assert_eq!(of(&[("/sys/fs/cgroup/memory.max", "268435456\n")], None), Some(256 << 20));
        assert_eq!(of(&[("/sys/fs/cgroup/memory.max", "max\n")], None), None);
        assert_eq!(of(&[(LEGACY, "268435456\n")], None), Some(256 << 20));
        // Version 1 of control groups uses this number for "no limit".
        assert_eq!(of(&[(LEGACY, "9223372036854771712\n")], None), None);
        assert_eq!(of(&[], None), None);
    }

    #[test]
    fn a_limit_of_the_pod_counts_where_the_container_has_none() {
        let own = ("/sys/fs/cgroup/memory.max", "max\n");
        assert_eq!(of(&[own], Some("268435456")), Some(256 << 20));
        assert_eq!(of(&[("/sys/fs/cgroup/memory.max", "134217728\n")], Some("268435456")), Some(128 << 20));
        for other in ["", "0", "256Mi"] {
            assert_eq!(of(&[own], Some(other)), None);
        }
        let visible = [
            own,
            (OWN, "0::/kubepods/pod1/container1\n"),
            ("/sys/fs/cgroup/kubepods/pod1/container1/memory.max", "max\n"),
            ("/sys/fs/cgroup/kubepods/pod1/memory.max", "268435456\n"),
            ("/sys/fs/cgroup/kubepods/memory.max", "8589934592\n"),
        ];
        assert_eq!(of(&visible, None), Some(256 << 20));
        let hidden = [own, (OWN, "0::/../../pod1\n"), ("/sys/fs/cgroup/../../pod1/memory.max", "1\n")];
        assert_eq!(of(&hidden, None), None);
        let statistics = "cache 0\nhierarchical_memory_limit 268435456\nhierarchical_memsw_limit 1\n";
        let legacy = [(LEGACY, "9223372036854771712\n"), (LEGACY_ALL.0, statistics)];
        assert_eq!(of(&legacy, None), Some(256 << 20));
    }
}
