//! A narrow wrapper around wasmtime with only the features that policies need: no WASI, no host functions and no text
//! format. Fuel limits the work of a sandbox. A time limit only ends sandboxes that get no processor.

mod built_in;
mod code;
mod compiled;
mod config;
#[cfg(test)]
mod draft;
#[expect(clippy::module_inception, reason = "the folder is named after it")]
mod engine;
mod error;
mod last_words;
mod progress;
mod script;
mod script_sandbox;
mod script_start;
mod state;
mod ticks;
mod trap;

pub use built_in::BuiltIn;
pub(crate) use compiled::Compiled;
pub(crate) use config::{MEMORIES, TABLES};
pub use engine::Engine;
pub use error::EngineError;
pub use script::{ScriptCode, ScriptEngine};
pub use script_start::SCRIPT;
