//! The errors of the engine.

/// A reason why the engine failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The engine cannot start on this machine.
    #[error("the WebAssembly engine does not start on this machine: {0}")]
    Start(String),
    /// A component does not compile.
    #[error("the component does not compile: {0}")]
    Compile(String),
    /// The engine does not accept the compiled code, because another engine made the code.
    #[error("the compiled code does not fit this engine: {0}")]
    Precompiled(String),
    /// A component does not have the exports of its world.
    #[error("the component does not fit world {world}: {reason}")]
    World {
        /// The world that the component declares.
        world: &'static str,
        /// The engine's message about the export or import that does not fit.
        reason: String,
    },
}
