//! What the engine can fail at.

/// Why the engine did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The engine cannot be set up on this machine.
    #[error("the WebAssembly engine does not start here: {0}")]
    Start(String),
    /// A component does not compile.
    #[error("it does not compile: {0}")]
    Compile(String),
    /// Compiled code is not of this engine.
    #[error("compiled code is not of this engine: {0}")]
    Precompiled(String),
    /// A component does not have the exports of its world.
    #[error("it does not fit world {world}: {reason}")]
    World {
        /// The world that it was taken for.
        world: &'static str,
        /// What does not fit.
        reason: String,
    },
}
