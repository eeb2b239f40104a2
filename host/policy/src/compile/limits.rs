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
        use rustix::process::{Resource, Rlimit, setrlimit};
        let at_most = |value| Rlimit { current: Some(value), maximum: Some(value) };
        setrlimit(Resource::Core, at_most(0))?;
        setrlimit(Resource::Fsize, at_most(0))?;
        setrlimit(Resource::Cpu, at_most(cpu_seconds))?;
        setrlimit(Resource::As, at_most(memory))?;
        Ok(())
    }
}
