//! Compiling a component: in a process of its own, so that a component that is made to be compiled for ever
//! costs one child and nothing else.

mod child;
mod limits;

pub use child::{ChildCompiler, compile_child_main};
pub use limits::CompileLimits;

use crate::engine::{Engine, EngineError};

/// The compile step. The gate has validated the component before it is asked.
pub trait Compile: Send + Sync {
    /// Code that [`Engine`]s of this binary can load.
    fn compile(&self, component: &[u8]) -> Result<Vec<u8>, CompileError>;
}

/// Why a component was not compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The compiler does not take it.
    #[error("the compiler refuses it: {0}")]
    Refused(String),
    /// It took more of a processor's time than it may.
    #[error("compiling took longer than {seconds} s and was stopped: split large functions")]
    TookTooLong {
        /// The limit that was hit.
        seconds: u64,
    },
    /// It did not end in time by the clock on the wall, and had not used up its processor time: the machine was busy.
    #[error("compiling did not end within {seconds} s, for lack of a free processor: it is tried again")]
    Starved {
        /// The limit that was hit.
        seconds: u64,
    },
    /// It took more memory than it may, or brought the compiler down.
    #[error("compiling ended with {how}; it may use {memory} bytes: split large functions")]
    Died {
        /// What the child's exit says.
        how: String,
        /// The memory that it had.
        memory: u64,
    },
    /// It came to more code than is kept of one component.
    #[error(
        "compiling comes to more than {limit} bytes of code: build with opt-level s, and leave out what is not used"
    )]
    TooMuchCode {
        /// How much there may be.
        limit: u64,
    },
    /// Somebody else ended the compiler, which says nothing about the component.
    #[error("the compiler's process was killed from outside, most likely because the machine is short of memory")]
    Killed,
    /// The child could not be run.
    #[error("the compiler's process could not be run: {0}")]
    NotRun(String),
}

impl CompileError {
    /// Whether trying again with the same component can end differently.
    pub fn is_lasting(&self) -> bool {
        !matches!(self, Self::NotRun(_) | Self::Killed | Self::Starved { .. })
    }
}

/// Compiles in this very process, without limits: for components that this build made itself, and tests.
#[derive(Debug)]
pub struct InProcessCompiler(pub Engine);

impl Compile for InProcessCompiler {
    fn compile(&self, component: &[u8]) -> Result<Vec<u8>, CompileError> {
        self.0.compile(component).map_err(|error: EngineError| CompileError::Refused(error.to_string()))
    }
}
