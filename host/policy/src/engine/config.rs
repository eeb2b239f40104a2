//! How wasmtime is set up.

use std::hash::{Hash, Hasher};

use sha2::{Digest as _, Sha256};
use wasmtime::{Config, Enabled, InstanceAllocationStrategy, OperatorCost, OptLevel, PoolingAllocationConfig};

use crate::{digest::Digest, limits::Limits};

/// The most that any sandbox may have, whatever limits a policy is given.
const MEMORY_CEILING: usize = 64 << 20;
/// Sandboxes that can be alive at once: a pass takes one a layer, and passes run on a few threads.
pub(super) const SANDBOXES: u32 = 48;
/// Core instances in one component: the module, and the adapters that componentizing puts around it.
const CORE_INSTANCES: u32 = 8;

/// Options that compiled code depends on; equal in the process that compiles and the one that runs.
pub(super) fn compiling() -> Config {
    let mut config = Config::new();
    config
        // Exact and equal everywhere, so that a pass that ends for lack of it ends so on every machine.
        .consume_fuel(true)
        .operator_cost(prices())
        // For a sandbox that gets no processor to use its fuel up: `ticks` counts the time.
        .epoch_interruption(true)
        // A pass is short: code that is not optimised is compiled three times as fast, and runs nearly as fast. To save on
        // the allocation of registers would gain nothing, and cost half of the speed.
        .cranelift_opt_level(OptLevel::None)
        // What only debuggers and backtraces read.
        .generate_address_map(false)
        .native_unwind_info(false)
        // Equal bits for equal inputs.
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false)
        // Nothing that a policy needs, and each less is less that can be wrong.
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        .wasm_tail_call(false)
        .concurrency_support(false)
        // The default of 512 KiB, written down because it decides where recursion ends.
        .max_wasm_stack(512 << 10)
        // 4 GiB of address space for each memory let compiled code go without bounds checks.
        .memory_reservation(4 << 30)
        .memory_guard_size(32 << 20);
    config
}

/// The same, and memory for sandboxes set aside.
pub(super) fn running() -> Config {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(SANDBOXES)
        .total_core_instances(SANDBOXES * CORE_INSTANCES)
        .max_core_instances_per_component(CORE_INSTANCES)
        // Each slot reserves address space (not memory) of 4 GiB and guards.
        .total_memories(SANDBOXES)
        .max_memories_per_component(1)
        .max_memory_size(MEMORY_CEILING)
        // Function tables: one of the module, one of the adapters.
        .total_tables(SANDBOXES * 4)
        .max_tables_per_component(4)
        .table_elements(20_000)
        // Reusing a slot costs clearing it: with this much kept resident it is cheaper than giving it back,
        // and only because the kernel is asked which pages were written at all.
        .linear_memory_keep_resident(2 << 20)
        .pagemap_scan(Enabled::Auto)
        // Warm slots of policies that nobody runs any more.
        .max_unused_warm_slots(SANDBOXES / 2);
    let mut config = compiling();
    // The memory of a sandbox that trapped has the message of a panic in it. Nothing is written anywhere.
    config.coredump_on_trap(true);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// Memory of a sandbox: its limit, within what a slot holds.
pub(super) fn slot_memory(limits: &Limits) -> usize {
    limits.memory.min(MEMORY_CEILING)
}

/// Instructions cost one, what takes longer costs more: a failing `memory.grow` was measured at ten
/// thousand times an addition.
fn prices() -> OperatorCost {
    let mut prices = OperatorCost::new();
    prices.MemoryGrow = u8::MAX;
    prices.TableGrow = u8::MAX;
    prices.variable.memory_grow_per_page = u8::MAX;
    prices.variable.table_grow_per_element = 8;
    prices
}

/// A digest of everything that wasmtime checks before it takes compiled code.
pub(super) fn fingerprint(engine: &wasmtime::Engine) -> Digest {
    let mut hasher = Sha(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    Digest::from(hasher.0)
}

/// A hasher without a seed: the fingerprint is compared between processes.
struct Sha(Sha256);

impl Hasher for Sha {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest: [u8; 32] = self.0.clone().finalize().into();
        digest.iter().take(8).fold(0, |value, byte| (value << 8) | u64::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_no_clock_ends_is_code_of_another_engine() {
        let of = |config: &Config| fingerprint(&wasmtime::Engine::new(config).unwrap());
        let mut endless = compiling();
        endless.epoch_interruption(false);
        assert_ne!(of(&endless), of(&compiling()));
        assert_eq!(of(&running()), of(&compiling()));
    }
}
