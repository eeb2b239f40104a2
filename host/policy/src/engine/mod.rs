//! A narrow wrapper around wasmtime: what policies need of it and nothing else. No WASI, no host functions,
//! no text format, fuel instead of time; time only where a processor stalls.

mod built_in;
mod code;
mod compiled;
mod config;
#[expect(clippy::module_inception, reason = "the folder is named after it")]
mod engine;
mod error;
mod last_words;
mod state;
mod ticks;
mod trap;

pub use built_in::BuiltIn;
pub(crate) use code::WasmCode;
pub(crate) use compiled::Compiled;
pub use engine::Engine;
pub use error::EngineError;
