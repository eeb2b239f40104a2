//! What compiling may cost.

use std::{ffi::OsString, time::Duration};

/// Bounds of one compile step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileLimits {
    /// Address space of the child. The binary itself and its stacks are part of it.
    pub memory: u64,
    /// Seconds of processor time.
    pub cpu_seconds: u64,
    /// Time by the wall, for a machine that has no processor to give.
    pub wall: Duration,
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self { memory: 1 << 30, cpu_seconds: 30, wall: Duration::from_mins(2) }
    }
}

impl CompileLimits {
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
