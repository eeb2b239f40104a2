//! Looking into a component and compiling it: in a process of its own, so that a component that is made to be looked at or
//! compiled for ever costs one child and nothing else.

mod child;
mod limits;

use std::time::Duration;

pub use child::{ChildCompiler, compile_child_main};
pub use limits::CompileLimits;

use crate::{
    clock::{Clock as _, SystemClock},
    engine::{Engine, EngineError},
    gate::{Bounds, InspectError, Inspection, inspect},
};

/// What is to be compiled, and within what.
#[derive(Clone, Copy)]
pub struct Order<'a> {
    /// The bytes, of which nothing is known but how many there are.
    pub component: &'a [u8],
    /// What a component may have.
    pub bounds: Bounds,
    /// Whether somebody still wants it: asked again and again while it is compiled.
    pub is_wanted: &'a dyn Fn() -> bool,
}

impl<'a> Order<'a> {
    /// One that is wanted to its end, within the usual bounds.
    pub fn new(component: &'a [u8]) -> Self {
        Self { component, bounds: Bounds::default(), is_wanted: &|| true }
    }
}

/// What compiling came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compilation {
    /// What the bytes show.
    pub inspection: Inspection,
    /// How long looking into them took.
    pub inspecting: Duration,
    /// Code that [`Engine`]s of this binary can load.
    pub code: Vec<u8>,
}

/// The compile step: inspects a component, and compiles what is one of the contract.
pub trait Compile: Send + Sync {
    /// Does both.
    fn compile(&self, order: &Order<'_>) -> Result<Compilation, CompileError>;
}

/// Why a component was not compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// Its bytes are no policy of this contract, or have too much of something.
    #[error(transparent)]
    Inspect(#[from] InspectError),
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
    #[error("checking and compiling it ended with {how}; it may use {memory} bytes: split large functions")]
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
    /// It is not wanted any more: its ConfigMap is gone, or something goes before it.
    #[error("checking it was ended, since it is not wanted any more or has to wait")]
    Unwanted,
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
        !matches!(self, Self::NotRun(_) | Self::Killed | Self::Unwanted | Self::Starved { .. })
    }
}

/// Does both in this very process, without limits: for components that this build made itself, and tests.
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
