//! Inspects and compiles a component in a child process. If a component keeps the inspection or the compiler busy
//! forever, it blocks only the child process.

mod child;
mod container;
mod limits;
mod resident;

use std::time::Duration;

pub use child::{ChildCompiler, compile_child_main};
pub use container::memory as container_memory;
pub use limits::CompileLimits;

use crate::{
    clock::{Clock as _, SystemClock},
    engine::{Engine, EngineError},
    inspect::{Bounds, InspectError, Inspection, inspect},
};

/// A component to compile, with its limits.
#[derive(Clone, Copy)]
pub struct Order<'a> {
    /// The component's bytes. Before the compile step, the gate checks only the number of these bytes.
    pub component: &'a [u8],
    /// The bounds of a component.
    pub bounds: Bounds,
    /// Returns whether the caller still needs the result. The compile step calls this function repeatedly.
    pub is_wanted: &'a dyn Fn() -> bool,
}

impl<'a> Order<'a> {
    /// Creates an order with the default bounds, for a caller that needs the result in any case.
    pub fn new(component: &'a [u8]) -> Self {
        Self { component, bounds: Bounds::default(), is_wanted: &|| true }
    }
}

/// The result of compiling a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compilation {
    /// The inspection of the bytes.
    pub inspection: Inspection,
    /// The duration of the inspection.
    pub inspecting: Duration,
    /// The code, which an [`Engine`] of the same binary can load.
    pub code: Vec<u8>,
}

/// The compile step: inspects a component, and compiles a component that fits the contract.
pub trait Compile: Send + Sync {
    /// Inspects and compiles a component.
    fn compile(&self, order: &Order<'_>) -> Result<Compilation, CompileError>;
}

/// A reason why the compile step did not compile a component.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The bytes are not a policy that implements this contract, or the component exceeds a bound.
    #[error(transparent)]
    Inspect(#[from] InspectError),
    /// The compiler rejects the component.
    #[error("the compiler rejects the component: {0}")]
    Refused(String),
    /// Compilation took too much processor time.
    #[error("compiling took longer than {seconds} s and was stopped: split large functions")]
    TookTooLong {
        /// The limit in seconds.
        seconds: u64,
    },
    /// Compilation exceeded the wall-clock limit, but not the limit of processor time, because the machine was busy.
    #[error(
        "compiling did not end within {seconds} s, since no processor was free: try again later; an operator does this by itself"
    )]
    Starved {
        /// The limit in seconds.
        seconds: u64,
    },
    /// Compilation took too much memory.
    #[error(
        "compiling took more than {limit} bytes of memory and was stopped: give the operator's \
             container more memory, or split large functions"
    )]
    TooMuchMemory {
        /// The limit in bytes.
        limit: u64,
    },
    /// The compiler crashed, or the kernel refused it memory.
    #[error(
        "the compile child ended with {how}; its memory limit is {memory} bytes: give the \
             operator's container more memory, or split large functions"
    )]
    Died {
        /// The child's exit status.
        how: String,
        /// The child's memory limit.
        memory: u64,
    },
    /// The compiled code is too large.
    #[error("compiling produces more than {limit} bytes of code: build with opt-level s, and leave out unused code")]
    TooMuchCode {
        /// The maximum size of the code in bytes.
        limit: u64,
    },
    /// The caller no longer needs the result: the ConfigMap is gone, or another check has priority.
    #[error("the operator stopped the check: its result is no longer needed, or another check has priority")]
    Unwanted,
    /// Another process killed the compiler. The component may be valid.
    #[error("another process killed the compile child, most likely because the machine is short of memory")]
    Killed,
    /// The host could not start the child process, or the child process could not set its limits.
    #[error("the compile child could not be run: {0}")]
    NotRun(String),
}

impl CompileError {
    /// Returns whether the compile step would fail in the same way if the caller tried the component again.
    pub fn is_lasting(&self) -> bool {
        !matches!(self, Self::NotRun(_) | Self::Killed | Self::Unwanted | Self::Starved { .. })
    }
}

/// Inspects and compiles in this process, without limits. Use this compiler only for components of this build, and for
/// tests.
#[derive(Debug)]
pub struct InProcessCompiler(pub Engine);

impl Compile for InProcessCompiler {
    fn compile(&self, order: &Order<'_>) -> Result<Compilation, CompileError> {
        let clock = SystemClock::start();
        let inspection = inspect(order.component, &order.bounds)?;
        let inspecting = clock.now();
        let refused = |error: EngineError| CompileError::Refused(error.to_string());
        Ok(Compilation { inspection, inspecting, code: self.0.compile(order.component).map_err(refused)? })
    }
}
