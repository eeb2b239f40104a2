//! Configures wasmtime.

use std::hash::{Hash, Hasher};

use sha2::{Digest as _, Sha256};
use wasmtime::{Config, Enabled, InstanceAllocationStrategy, OperatorCost, OptLevel, PoolingAllocationConfig};

use crate::{digest::Digest, limits::Limits};

/// The most memory of any sandbox, whatever the policy's limits are.
const MEMORY_CEILING: usize = 64 << 20;
/// The most sandboxes that can be open at once: a pass opens one for each layer, and passes run on a few threads.
pub(super) const SANDBOXES: u32 = 48;
/// The core instances in one component: the module, and the adapters that the conversion to a component adds. A
/// component that is composed of others has the instances of each part. Toolchains for JavaScript make eleven, for
/// Python 38.
const CORE_INSTANCES: u32 = 48;
/// The memories in one component: one for each part that it is composed of.
pub(crate) const MEMORIES: u32 = 4;
/// The function tables in one component.
pub(crate) const TABLES: u32 = 12;

/// The options that compiled code depends on. They are the same in the compile child and in the process that runs the
/// code.
pub(super) fn compiling() -> Config {
    let mut config = Config::new();
    config
        // Fuel is exact, so a pass that runs out of fuel does so on every machine.
        .consume_fuel(true)
        .operator_cost(prices())
        // If a sandbox gets no processor, it does not use up its fuel. So `ticks` limits its time.
        .epoch_interruption(true)
        // Passes are short. Code without optimization compiles three times as fast and runs nearly as fast. A simpler
        // register allocation would not compile faster, and would halve the speed of the code.
        .cranelift_opt_level(OptLevel::None)
        // Only debuggers and backtraces read the address map.
        .generate_address_map(false)
        .native_unwind_info(false)
        // The same input gives the same bits on every machine.
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false)
        // Code that copies values between the parts of a composed component has the memories of both.
        .wasm_multi_memory(true)
        // Interpreters in components use tail calls.
        .wasm_tail_call(true)
        // Policies need none of these features, and each feature is a possible source of defects.
        .wasm_memory64(false)
        .concurrency_support(false)
        // 512 KiB is also the default. It is set here because it decides where recursion ends.
        .max_wasm_stack(512 << 10)
        // With 4 GiB of address space for each memory, compiled code needs no bounds checks.
        .memory_reservation(4 << 30)
        .memory_guard_size(32 << 20);
    config
}

/// The same options, with memory reserved for sandboxes.
pub(super) fn running() -> Config {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(SANDBOXES)
        .total_core_instances(SANDBOXES * CORE_INSTANCES)
        .max_core_instances_per_component(CORE_INSTANCES)
        // Each slot reserves 4 GiB of address space (not memory) and guards. Some machines have 512 GiB of address
        // space in all, so there are not as many slots as the largest components could use.
        .total_memories(SANDBOXES * 2)
        .max_memories_per_component(MEMORIES)
        .max_memory_size(MEMORY_CEILING)
        .total_tables(SANDBOXES * TABLES)
        .max_tables_per_component(TABLES)
        .table_elements(20_000)
        // A slot must be cleared before reuse. Keeping this much memory resident is cheaper than returning it to the
        // kernel, but only because the kernel reports which pages were written.
        .linear_memory_keep_resident(2 << 20)
        .pagemap_scan(Enabled::Auto)
        // Limits the warm slots of policies that no longer run.
        .max_unused_warm_slots(SANDBOXES / 2);
    let mut config = compiling();
    // The memory of a trapped sandbox contains the message of a panic. The core dump stays in memory.
    config.coredump_on_trap(true);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// The memory of a sandbox: its limit, capped by the size of a slot.
pub(super) fn slot_memory(limits: &Limits) -> usize {
    limits.memory.min(MEMORY_CEILING)
}

/// Fuel prices: an instruction costs one, slow ones cost more. A failing `memory.grow` was measured at ten thousand
/// times an addition.
fn prices() -> OperatorCost {
    let mut prices = OperatorCost::new();
    prices.MemoryGrow = u8::MAX;
    prices.TableGrow = u8::MAX;
    prices.variable.memory_grow_per_page = u8::MAX;
    prices.variable.table_grow_per_element = 8;
    prices
}

/// A digest of everything that wasmtime checks before it accepts compiled code.
pub(super) fn fingerprint(engine: &wasmtime::Engine) -> Digest {
    let mut hasher = Sha(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    Digest::from(hasher.0)
}

/// A hasher without a seed: two processes compare the fingerprint.
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
    fn code_without_epoch_interruption_has_another_fingerprint() {
        let of = |config: &Config| fingerprint(&wasmtime::Engine::new(config).unwrap());
        let mut endless = compiling();
        endless.epoch_interruption(false);
        assert_ne!(of(&endless), of(&compiling()));
        assert_eq!(of(&running()), of(&compiling()));
    }
}
