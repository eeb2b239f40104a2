//! What compiling may cost.

use std::{ffi::OsString, fs, time::Duration};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Where a container's system says how much memory it may have, by the second and the first version of control groups; a
/// machine's own has neither.
const CONTAINER: [&str; 2] = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
/// What a child has of address space before it compiles anything, nearly none of which is in memory: the program's file.
const PROGRAM: u64 = 40 << 20;
/// How far a child stands back behind the operator where there are not processors for both: it gets a tenth of one.
const NICE: i32 = 10;

/// Bounds of one compile step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileLimits {
    /// Address space of the child. The binary itself and its stacks are part of it.
    pub memory: u64,
    /// Seconds of processor time.
    pub cpu_seconds: u64,
    /// Of these, the seconds after which the bytes must have been looked into.
    pub inspect_seconds: u64,
    /// Time by the wall, for a machine that has no processor to give.
    pub wall: Duration,
    /// Bytes of the compiled code, which is read into this process.
    pub code: u64,
}

impl Default for CompileLimits {
    fn default() -> Self {
        // Code has about three times the bytes of its component.
        Self { memory: 1 << 30, cpu_seconds: 30, inspect_seconds: 5, wall: Duration::from_mins(2), code: 32 << 20 }
    }
}

impl CompileLimits {
    /// The same where a container has less memory. A child that takes more than there is would not end alone: what the
    /// system then ends is the container, with the operator in it.
    pub fn of_this_container() -> Self {
        Self::default().of(|file| fs::read_to_string(file).ok())
    }

    /// The same with what these files hold.
    fn of(self, read: impl Fn(&str) -> Option<String>) -> Self {
        CONTAINER.iter().fold(self, |limits, file| limits.within(read(file).as_deref()))
    }

    /// At most half of what a container may have, as its system writes that; the other half is for whoever compiles.
    fn within(self, container: Option<&str>) -> Self {
        let most = container.and_then(|bytes| bytes.trim().parse::<u64>().ok());
        Self { memory: most.map_or(self.memory, |bytes| self.memory.min(bytes / 2 + PROGRAM)), ..self }
    }

    /// Seconds of processor time to look into the bytes.
    pub(super) fn inspecting(&self) -> u64 {
        self.inspect_seconds.min(self.cpu_seconds)
    }

    /// The arguments that hand the limits to the child.
    pub(super) fn arguments(&self) -> [OsString; 3] {
        [self.memory, self.inspecting(), self.cpu_seconds].map(|limit| limit.to_string().into())
    }

    /// Sets the limits on this process, which cannot raise them again but for the time to compile. Passes of the operator
    /// come before it.
    pub(super) fn confine(memory: u64, inspecting: u64, cpu_seconds: u64) -> std::io::Result<()> {
        // A machine that does not let it only has it compete.
        let _ = rustix::process::nice(NICE);
        let at_most = |resource, value: u64| between(resource, value, value);
        at_most(Resource::Core, 0)?;
        at_most(Resource::Fsize, 0)?;
        // At the soft limit comes a signal that nothing else sends. At the hard one comes the same that the kernel sends
        // when memory is short, so there must be a second between them.
        between(Resource::Cpu, inspecting, cpu_seconds.saturating_add(1))?;
        at_most(Resource::As, memory)?;
        Ok(())
    }

    /// The bytes were looked into: the rest of the time is there to compile them.
    pub(super) fn go_on(cpu_seconds: u64) -> std::io::Result<()> {
        between(Resource::Cpu, cpu_seconds, cpu_seconds.saturating_add(1))
    }
}

fn between(resource: Resource, soft: u64, hard: u64) -> std::io::Result<()> {
    // Whoever started the operator may have set a lower limit, which cannot be raised.
    let hard = getrlimit(resource).maximum.map_or(hard, |maximum| maximum.min(hard));
    Ok(setrlimit(resource, Rlimit { current: Some(soft.min(hard)), maximum: Some(hard) })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_has_half_of_what_its_container_has_and_never_more_than_on_a_machine() {
        let memory = |container: Option<&str>| CompileLimits::default().within(container).memory;
        let all = CompileLimits::default().memory;
        assert_eq!(memory(Some("268435456\n")), (128 << 20) + PROGRAM);
        for other in [None, Some("max\n"), Some(""), Some("17179869184\n")] {
            assert_eq!(memory(other), all);
        }
    }

    #[test]
    fn containers_of_either_version_of_control_groups_are_understood() {
        let of = |version: usize, bytes: &str| {
            CompileLimits::default().of(|file| (file == CONTAINER[version]).then(|| bytes.to_owned())).memory
        };
        assert_eq!(of(0, "268435456\n"), (128 << 20) + PROGRAM);
        assert_eq!(of(1, "268435456\n"), (128 << 20) + PROGRAM);
        // How the first version writes that there is no limit.
        assert_eq!(of(1, "9223372036854771712\n"), CompileLimits::default().memory);
    }
}
