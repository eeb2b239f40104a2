//! Opens sandboxes of the script engine. Each sandbox first loads a script.

use std::sync::Arc;

use wasmtime::component::{ComponentType, Lift, Lower};

use super::{
    code::{WasmCode, WasmSandbox},
    config,
    progress::Progress,
    trap,
};
use crate::{
    code::World,
    failure::{Failure, Verb},
    limits::Limits,
};

/// The name of a script in packages and in messages.
pub const SCRIPT: &str = "policy.js";
/// The interface that only the script engine exports.
const INTERFACE: &str = "kaos:policy/script@0.1.0";

/// A script, with the code that runs it.
pub(super) struct Script {
    pub(super) engine: Arc<WasmCode>,
    pub(super) text: String,
}

/// The record `source` of the interface `script`.
#[derive(ComponentType, Lower)]
#[component(record)]
struct ScriptSource<'a> {
    file: &'a str,
    text: &'a str,
    memory: u64,
    #[component(name = "stop-at")]
    stop_at: u64,
}

/// The enum `kind` of the interface `script`.
#[derive(ComponentType, Lift, Clone, Copy)]
#[component(enum)]
#[repr(u8)]
#[expect(dead_code, reason = "wasmtime creates the values without naming the variants")]
enum Kind {
    #[component(name = "policy")]
    Policy,
    #[component(name = "overlay")]
    Overlay,
}

/// The reason why the script engine did not load a script.
pub(super) struct NotLoaded {
    pub(super) failure: Failure,
    /// The progress of the script, if the sandbox ended.
    pub(super) progress: Option<Progress>,
}

impl Script {
    /// Opens a sandbox with the limits in `room`, and loads the script. Of the sandbox's memory, the script gets only
    /// the amount in `limits`. If `stop_at` is not 0, the script engine stops the script at the poll with this number.
    pub(super) fn start(&self, limits: &Limits, room: &Limits, stop_at: u64) -> Result<WasmSandbox, NotLoaded> {
        let mut progress = None;
        let sandbox = self.engine.open_script(room, |store, instance| {
            let verb = Verb::Load;
            let absent = || Failure::Sandbox(format!("the script engine does not export {INTERFACE}"));
            let interface = instance.get_export_index(&mut *store, None, INTERFACE).ok_or_else(absent)?;
            let load = instance.get_export_index(&mut *store, Some(&interface), "load").ok_or_else(absent)?;
            let load = instance
                .get_typed_func::<(ScriptSource<'_>,), (Result<Kind, String>,)>(&mut *store, &load)
                .map_err(|error| Failure::Sandbox(format!("{INTERFACE}: {error:#}")))?;
            let memory = config::slot_memory(limits) as u64;
            let source = ScriptSource { file: SCRIPT, text: &self.text, memory, stop_at };
            let (loaded,) = load.call(&mut *store, (source,)).map_err(|error| {
                let failure = trap::failure(store, limits, verb, &error);
                progress = store.data().progress;
                failure
            })?;
            match loaded {
                Ok(Kind::Policy) => Ok(World::Policy),
                Ok(Kind::Overlay) => Ok(World::Overlay),
                Err(reason) => Err(Failure::Script { verb, reason }),
            }
        });
        sandbox.map_err(|failure| NotLoaded { failure, progress })
    }
}
