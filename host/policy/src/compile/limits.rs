//! The limits of the compile child.

use std::{ffi::OsString, io, time::Duration};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::container;
use crate::inspect::SizeClass;

/// The address space that a child may have above its memory limit: for the program's file, the stacks of threads, and
/// the reserve of the allocator. Most of this address space needs no memory.
const RESERVED: u64 = 256 << 20;
/// The niceness of a child that runs next to an operator. If no processor is free, the child gets a tenth of the
/// processor time that the operator gets.
const BESIDE_AN_OPERATOR: i32 = 10;

/// The limits of one compile step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileLimits {
    /// The maximum number of bytes of memory that only the child uses. The pages of the program's file do not count,
    /// because the parent and the child share them.
    pub memory: u64,
    /// The limit of processor time in total, in seconds.
    pub cpu_seconds: u64,
    /// The limit of processor time for the inspection, in seconds. The total includes this time.
    pub inspect_seconds: u64,
    /// The limit of wall-clock time. It ends a child that waits for a free processor, because waiting uses no processor
    /// time.
    pub wall: Duration,
    /// The maximum size of the compiled code in bytes. The parent reads the whole code into its memory.
    pub code: u64,
    /// The number by which the child's niceness is higher than the parent's.
    pub niceness: i32,
}

impl Default for CompileLimits {
    fn default() -> Self {
        let code = SizeClass::Standard.code();
        Self {
            memory: 1 << 30,
            cpu_seconds: 30,
            inspect_seconds: 5,
            // With a tenth of a processor, the child takes five minutes to use up `cpu_seconds`.
            wall: Duration::from_mins(10),
            code,
            niceness: BESIDE_AN_OPERATOR,
        }
    }
}

impl CompileLimits {
    /// The default limits, lowered if this container has too little memory for them. If the child used more memory than
    /// the container has, the kernel would kill the whole container, and the operator with it.
    pub fn of_this_container() -> Self {
        Self::default().within(container::memory())
    }

    /// Returns the limits for components up to this size class. A component of the large class has up to three times
    /// the bytes, so its compilation gets twice the time.
    #[must_use]
    pub fn up_to(self, size: SizeClass) -> Self {
        let factor = if size == SizeClass::Large { 2 } else { 1 };
        let (cpu_seconds, wall) = (self.cpu_seconds * u64::from(factor), self.wall * factor);
        Self { code: size.code(), cpu_seconds, wall, ..self }
    }

    /// Gives the child the priority of the parent, for a parent that can do nothing until the child ends.
    #[must_use]
    pub fn awaited(self) -> Self {
        Self { niceness: 0, ..self }
    }

    /// Limits the child's memory to half of the container's memory. The other half is for the operator.
    fn within(self, container: Option<u64>) -> Self {
        Self { memory: container.map_or(self.memory, |bytes| self.memory.min(bytes / 2)), ..self }
    }

    /// Returns the seconds of processor time for the inspection.
    pub(super) fn inspecting(&self) -> u64 {
        self.inspect_seconds.min(self.cpu_seconds)
    }

    /// Returns the arguments that pass the limits to the child.
    pub(super) fn arguments(&self) -> [OsString; 4] {
        let [memory, inspecting, total] = [self.memory, self.inspecting(), self.cpu_seconds].map(|it| it.to_string());
        [memory, inspecting, total, self.niceness.to_string()].map(OsString::from)
    }

    /// Applies the limits to this process. After this call, the process can raise only the limit of processor time, for
    /// the compilation. Also raises the niceness of this process.
    pub(super) fn confine(memory: u64, inspecting: u64, cpu_seconds: u64, niceness: i32) -> io::Result<()> {
        // If the system refuses the niceness, the child competes with its parent for processors.
        let _ = rustix::process::nice(niceness);
        let at_most = |resource, value: u64| between(resource, value, value);
        at_most(Resource::Core, 0)?;
        at_most(Resource::Fsize, 0)?;
        // At the soft limit, the kernel sends SIGXCPU, which has no other cause. At the hard limit, the kernel sends
        // SIGKILL, as it does when memory runs out. The soft limit is at least one second below the hard limit. So
        // SIGXCPU comes first, and the parent knows the cause.
        between(Resource::Cpu, inspecting, cpu_seconds.saturating_add(1))?;
        // The parent ends a child that uses too much memory. The kernel limits only the child's address space. This
        // second limit ends a child that takes memory faster than the parent measures it, and a child on a system
        // without `/proc`.
        at_most(Resource::As, memory.saturating_add(RESERVED))?;
        Ok(())
    }

    /// Raises the limit of processor time from the limit for the inspection to the limit for inspection and compilation
    /// together.
    pub(super) fn go_on(cpu_seconds: u64) -> io::Result<()> {
        between(Resource::Cpu, cpu_seconds, cpu_seconds.saturating_add(1))
    }
}

fn between(resource: Resource, soft: u64, hard: u64) -> io::Result<()> {
    // The operator itself may have a lower hard limit than `hard`, and a process cannot raise its hard limit.
    let hard = getrlimit(resource).maximum.map_or(hard, |maximum| maximum.min(hard));
    Ok(setrlimit(resource, Rlimit { current: Some(soft.min(hard)), maximum: Some(hard) })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_gets_half_of_its_containers_memory_and_at_most_the_default() {
        let memory = |container: Option<u64>| CompileLimits::default().within(container).memory;
        let all = CompileLimits::default().memory;
        assert_eq!(memory(Some(256 << 20)), 128 << 20);
        for other in [None, Some(16 << 30)] {
            assert_eq!(memory(other), all);
        }
    }

    #[test]
    fn a_large_component_gets_twice_the_time() {
        let limits = CompileLimits::default();
        let large = limits.up_to(SizeClass::Large);
        assert_eq!((large.cpu_seconds, large.wall), (2 * limits.cpu_seconds, 2 * limits.wall));
        assert_eq!(limits.up_to(SizeClass::Standard), limits);
    }
}
