//! What compiling may cost.

use std::{ffi::OsString, fs, time::Duration};

/// Where a container's system says how much memory it may have; a machine's own has no such file.
const CONTAINER: &str = "/sys/fs/cgroup/memory.max";
/// What a child has of address space before it compiles anything, nearly none of which is in memory: the program's file.
const PROGRAM: u64 = 40 << 20;

/// Bounds of one compile step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileLimits {
    /// Address space of the child. The binary itself and its stacks are part of it.
    pub memory: u64,
    /// Seconds of processor time.
    pub cpu_seconds: u64,
    /// Time by the wall, for a machine that has no processor to give.
    pub wall: Duration,
    /// Bytes of the compiled code, which is read into this process.
    pub code: u64,
}

impl Default for CompileLimits {
    fn default() -> Self {
        // Code has about three times the bytes of its component.
        Self { memory: 1 << 30, cpu_seconds: 30, wall: Duration::from_mins(2), code: 32 << 20 }
    }
}

impl CompileLimits {
    /// The same where a container has less memory. A child that takes more than there is would not end alone: what the
    /// system then ends is the container, with the operator in it.
    pub fn of_this_container() -> Self {
        Self::default().within(fs::read_to_string(CONTAINER).ok().as_deref())
    }

    /// At most half of what a container may have, as its system writes that; the other half is for whoever compiles.
    fn within(self, container: Option<&str>) -> Self {
        let most = container.and_then(|bytes| bytes.trim().parse::<u64>().ok());
        Self { memory: most.map_or(self.memory, |bytes| self.memory.min(bytes / 2 + PROGRAM)), ..self }
    }

    /// The arguments that hand the limits to the child.
    pub(super) fn arguments(&self) -> [OsString; 2] {
        [self.memory.to_string().into(), self.cpu_seconds.to_string().into()]
    }

    /// Sets the limits on this process, which cannot raise them again.
    pub(super) fn confine(memory: u64, cpu_seconds: u64) -> std::io::Result<()> {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let between = |resource, soft: u64, hard: u64| {
            // Whoever started the operator may have set a lower limit, which cannot be raised.
            let hard = getrlimit(resource).maximum.map_or(hard, |maximum| maximum.min(hard));
            setrlimit(resource, Rlimit { current: Some(soft.min(hard)), maximum: Some(hard) })
        };
        let at_most = |resource, value: u64| between(resource, value, value);
        at_most(Resource::Core, 0)?;
        at_most(Resource::Fsize, 0)?;
        // At the soft limit comes a signal that nothing else sends. At the hard one comes the same that the kernel sends
        // when memory is short, so there must be a second between them.
        between(Resource::Cpu, cpu_seconds, cpu_seconds.saturating_add(1))?;
        at_most(Resource::As, memory)?;
        Ok(())
    }
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
}
