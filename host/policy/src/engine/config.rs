//! Configures wasmtime.

use std::hash::{Hash, Hasher};

use sha2::{Digest as _, Sha256};
use wasmtime::{Config, Enabled, InstanceAllocationStrategy, OperatorCost, OptLevel, PoolingAllocationConfig};

use crate::{digest::Digest, limits::Limits};

/// The maximum memory of a sandbox in bytes. A policy's own limit cannot be higher.
const MEMORY_CEILING: usize = 64 << 20;
/// The maximum number of sandboxes that can be open at the same time. A pass has at most two open sandboxes at a time,
/// and passes run on a few threads.
pub(super) const SANDBOXES: u32 = 48;
/// The maximum number of core instances in one component. A component contains the instances of its module, and of the
/// adapters that the conversion to a component adds. A composed component contains the instances of all its parts.
/// Toolchains for JavaScript create eleven instances, and toolchains for Python 38.
const CORE_INSTANCES: u32 = 48;
/// The maximum number of linear memories in one component. A composed component has one linear memory for each part.
pub(crate) const MEMORIES: u32 = 4;
/// The maximum number of function tables in one component.
pub(crate) const TABLES: u32 = 12;
/// The maximum number of entries in one function table.
pub(super) const TABLE_ENTRIES: usize = 20_000;

/// Returns the options that affect compiled code. The compile child and the process that runs the code use the same
/// options.
pub(super) fn compiling() -> Config {
    let mut config = Config::new();
    config
        // Fuel is exact. If a pass runs out of fuel on one machine, it runs out of fuel on every machine.
        .consume_fuel(true)
        .operator_cost(prices())
        // A sandbox that gets no processor does not use up its fuel. So the module `ticks` also limits the time of a
        // sandbox.
        .epoch_interruption(true)
        // Passes are short. Code without optimization compiles three times as fast and runs nearly as fast. With a
        // simpler register allocation, the compilation would take as long, and the code would run at half the speed.
        .cranelift_opt_level(OptLevel::None)
        // Only debuggers and backtraces read the address map.
        .generate_address_map(false)
        .native_unwind_info(false)
        // With the next two options, floating-point instructions give the same bits on every machine.
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false)
        // Code that copies values between the parts of a composed component accesses two memories.
        .wasm_multi_memory(true)
        // Interpreters in components use tail calls.
        .wasm_tail_call(true)
        // Policies need none of the following features, and each feature is a possible source of defects.
        .wasm_memory64(false)
        .concurrency_support(false)
        // A stack of 512 KiB is also wasmtime's default. Set the size explicitly: another version of wasmtime must not
        // change the depth at which recursion fails.
        .max_wasm_stack(512 << 10)
        // With 4 GiB of address space for each memory, compiled code needs no bounds checks.
        .memory_reservation(4 << 30)
        .memory_guard_size(32 << 20);
    config
}

/// Returns the options of [`compiling`], and also reserves memory for sandboxes.
pub(super) fn running() -> Config {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(SANDBOXES)
        .total_core_instances(SANDBOXES * CORE_INSTANCES)
        .max_core_instances_per_component(CORE_INSTANCES)
        // Each slot reserves 4 GiB of address space (not memory) and guard pages. Some machines have only 512 GiB of
        // address space. So the pool has only two slots for each sandbox, although a component can have up to
        // `MEMORIES` memories.
        .total_memories(SANDBOXES * 2)
        .max_memories_per_component(MEMORIES)
        .max_memory_size(MEMORY_CEILING)
        .total_tables(SANDBOXES * TABLES)
        .max_tables_per_component(TABLES)
        .table_elements(TABLE_ENTRIES)
        // wasmtime must clear a slot before it reuses the slot. Clearing this much memory is cheaper than returning it
        // to the kernel: the kernel reports which pages the sandbox wrote, and wasmtime clears only these pages.
        .linear_memory_keep_resident(2 << 20)
        .pagemap_scan(Enabled::Auto)
        // Clearing is also cheaper for tables, because returning their pages to the kernel interrupts all processors.
        // The tables of usual policies are smaller than this size. Of a larger table, the pool returns the rest to the
        // kernel.
        .table_keep_resident(16 << 10)
        // Limit the number of free slots that still contain the memory of a policy that no longer runs.
        .max_unused_warm_slots(SANDBOXES / 2);
    let mut config = compiling();
    // After a panic, the memory of the trapped sandbox contains the message. The core dump gives the host this memory,
    // and is never written to a file.
    config.coredump_on_trap(true);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// Returns the memory limit of a sandbox: the policy's limit, but at most the size of a slot.
pub(super) fn slot_memory(limits: &Limits) -> usize {
    limits.memory.min(MEMORY_CEILING)
}

/// Returns the fuel that each instruction costs. Most instructions cost one unit of fuel, and slow instructions cost
/// more. In a measurement, a failing `memory.grow` took ten thousand times as long as an addition.
fn prices() -> OperatorCost {
    let mut prices = OperatorCost::new();
    prices.MemoryGrow = u8::MAX;
    prices.TableGrow = u8::MAX;
    prices.variable.memory_grow_per_page = u8::MAX;
    prices.variable.table_grow_per_element = 8;
    prices
}

/// Returns a digest of everything that wasmtime checks before it accepts compiled code.
pub(super) fn fingerprint(engine: &wasmtime::Engine) -> Digest {
    let mut hasher = Sha(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    Digest::from(hasher.0)
}

/// A hasher without a seed, because two processes must compute the same fingerprint.
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
