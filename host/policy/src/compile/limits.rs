//! The limits of the compile child.

use std::{ffi::OsString, fs, time::Duration};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The files with a container's memory limit, for version 2 and version 1 of control groups. The root group of a
/// machine has neither.
const CONTAINER: [&str; 2] = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
/// The address space of a child before it compiles anything: the program's file. Nearly none of it is in memory.
const PROGRAM: u64 = 40 << 20;
/// The child's nice value. If processors are short, the child gets a tenth of the operator's share.
const NICE: i32 = 10;

/// The limits of one compile step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileLimits {
    /// The child's address space, including the binary and its stacks.
    pub memory: u64,
    /// Seconds of processor time in total.
    pub cpu_seconds: u64,
    /// Seconds of processor time for the inspection, as part of the total.
    pub inspect_seconds: u64,
    /// Wall-clock time, for a machine without a free processor.
    pub wall: Duration,
    /// Bytes of the compiled code, which the parent reads into its memory.
    pub code: u64,
}

impl Default for CompileLimits {
    fn default() -> Self {
        // Code has about three times the bytes of its component.
        Self { memory: 1 << 30, cpu_seconds: 30, inspect_seconds: 5, wall: Duration::from_mins(2), code: 32 << 20 }
    }
}

impl CompileLimits {
    /// The default limits, lowered if a container has less memory. If a child took more memory than there is, the
    /// kernel would end the whole container with the operator in it.
    pub fn of_this_container() -> Self {
        Self::default().of(|file| fs::read_to_string(file).ok())
    }

    /// Lowers the limits to the contents of the control group files.
    fn of(self, read: impl Fn(&str) -> Option<String>) -> Self {
        CONTAINER.iter().fold(self, |limits, file| limits.within(read(file).as_deref()))
    }

    /// Limits the child's address space to half of the container's memory, plus the program's file. `container` is the
    /// content of a control group file. The other half of the memory is for the operator.
    fn within(self, container: Option<&str>) -> Self {
        let most = container.and_then(|bytes| bytes.trim().parse::<u64>().ok());
        Self { memory: most.map_or(self.memory, |bytes| self.memory.min(bytes / 2 + PROGRAM)), ..self }
    }

    /// Seconds of processor time for the inspection.
    pub(super) fn inspecting(&self) -> u64 {
        self.inspect_seconds.min(self.cpu_seconds)
    }

    /// The arguments that pass the limits to the child.
    pub(super) fn arguments(&self) -> [OsString; 3] {
        [self.memory, self.inspecting(), self.cpu_seconds].map(|limit| limit.to_string().into())
    }

    /// Applies the limits to this process. It cannot raise them again, except the time for compilation. The operator's
    /// passes get priority.
    pub(super) fn confine(memory: u64, inspecting: u64, cpu_seconds: u64) -> std::io::Result<()> {
        // If the system refuses, the child only competes with the operator.
        let _ = rustix::process::nice(NICE);
        let at_most = |resource, value: u64| between(resource, value, value);
        at_most(Resource::Core, 0)?;
        at_most(Resource::Fsize, 0)?;
        // At the soft limit the kernel sends a signal that has no other cause. At the hard limit it sends the same
        // signal as when memory is short. One second between the limits tells the two apart.
        between(Resource::Cpu, inspecting, cpu_seconds.saturating_add(1))?;
        at_most(Resource::As, memory)?;
        Ok(())
    }

    /// Extends the processor time to the total after the inspection.
    pub(super) fn go_on(cpu_seconds: u64) -> std::io::Result<()> {
        between(Resource::Cpu, cpu_seconds, cpu_seconds.saturating_add(1))
    }
}

fn between(resource: Resource, soft: u64, hard: u64) -> std::io::Result<()> {
    // The operator may run under a lower hard limit, which a process cannot raise.
    let hard = getrlimit(resource).maximum.map_or(hard, |maximum| maximum.min(hard));
    Ok(setrlimit(resource, Rlimit { current: Some(soft.min(hard)), maximum: Some(hard) })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_gets_half_of_its_containers_memory_and_at_most_the_default() {
        let memory = |container: Option<&str>| CompileLimits::default().within(container).memory;
        let all = CompileLimits::default().memory;
        assert_eq!(memory(Some("268435456\n")), (128 << 20) + PROGRAM);
        for other in [None, Some("max\n"), Some(""), Some("17179869184\n")] {
            assert_eq!(memory(other), all);
        }
    }

    #[test]
    fn limits_of_both_versions_of_control_groups_are_read() {
        let of = |version: usize, bytes: &str| {
            CompileLimits::default().of(|file| (file == CONTAINER[version]).then(|| bytes.to_owned())).memory
        };
        assert_eq!(of(0, "268435456\n"), (128 << 20) + PROGRAM);
        assert_eq!(of(1, "268435456\n"), (128 << 20) + PROGRAM);
        // Version 1 writes this number for "no limit".
        assert_eq!(of(1, "9223372036854771712\n"), CompileLimits::default().memory);
    }
}
