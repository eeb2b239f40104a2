//! The host's data for a sandbox: its memory limit, and a denied request for memory.

use wasmtime::{ResourceLimiter, Store, error::bail};

use super::{config, ticks};
use crate::limits::Limits;

/// The most table entries of a sandbox.
const TABLE: usize = 20_000;

/// The data of one store.
pub(super) struct State {
    memory: usize,
    memory_limit: usize,
    pub(super) denied: Option<usize>,
}

impl State {
    pub(super) fn store(engine: &wasmtime::Engine, limits: &Limits) -> wasmtime::Result<Store<Self>> {
        let state = Self { memory: 0, memory_limit: config::slot_memory(limits), denied: None };
        let mut store = Store::new(engine, state);
        store.limiter(|state| state);
        store.set_fuel(limits.fuel)?;
        store.set_epoch_deadline(ticks::MOST);
        store.set_hostcall_fuel(limits.answer_bytes);
        Ok(store)
    }

    pub(super) fn memory(&self) -> usize {
        self.memory
    }

    pub(super) fn memory_limit(&self) -> usize {
        self.memory_limit
    }
}

impl ResourceLimiter for State {
    /// Ends the pass instead of reporting the failure to the component. Components handle missing memory differently,
    /// and a typed error tells more than an abort.
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        if desired > self.memory_limit {
            self.denied = Some(desired);
            bail!("out of memory");
        }
        self.memory = desired;
        Ok(true)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE)
    }
}
