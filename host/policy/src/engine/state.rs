//! The host's data for a sandbox: its memory limit, and a request for memory that was denied.

use wasmtime::{ResourceLimiter, Store, error::bail};

use super::{config, progress::Progress, ticks};
use crate::limits::Limits;

/// The host's data for one sandbox, in the sandbox's wasmtime store.
pub(super) struct State {
    memory: usize,
    memory_limit: usize,
    pub(super) denied: Option<usize>,
    /// Whether the sandbox contains the script engine.
    pub(super) runs_script: bool,
    /// The progress of the script when the sandbox ended.
    pub(super) progress: Option<Progress>,
}

impl State {
    fn new(memory_limit: usize) -> Self {
        Self { memory: 0, memory_limit, denied: None, runs_script: false, progress: None }
    }

    pub(super) fn store(engine: &wasmtime::Engine, limits: &Limits) -> wasmtime::Result<Store<Self>> {
        let state = Self::new(config::slot_memory(limits));
        let mut store = Store::new(engine, state);
        store.limiter(|state| state);
        store.set_fuel(limits.fuel)?;
        store.set_epoch_deadline(ticks::MAX_TICKS);
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
    /// Ends the pass when the component asks for too much memory. The host could instead let the component's
    /// `memory.grow` fail, but each component would handle this failure in another way. A typed error of the host is
    /// clearer.
    ///
    /// The limit applies to the total size of all memories of a component.
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let all = self.memory.saturating_add(desired.saturating_sub(current));
        if all > self.memory_limit {
            self.denied = Some(all);
            bail!("out of memory");
        }
        self.memory = all;
        Ok(true)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= config::TABLE_ENTRIES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_memories_together_have_the_limit() {
        let mut state = State::new(100);
        assert!(state.memory_growing(0, 60, None).unwrap());
        assert!(state.memory_growing(0, 30, None).unwrap());
        assert!(state.memory_growing(30, 40, None).unwrap());
        assert_eq!((state.memory(), state.denied), (100, None));
        assert!(state.memory_growing(60, 61, None).is_err());
        assert_eq!((state.memory(), state.denied), (100, Some(101)));
    }
}
