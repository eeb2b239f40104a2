//! Code that the test suites share: recorded cases, the stage that runs them, and functions that mask values before a
//! test compares two objects.

pub mod blocks;
pub mod case;
pub mod control_plane;
pub mod default_policies;
pub mod fuzzed;
pub mod gadget;
pub mod guests;
pub mod harness;
pub mod hostile;
pub mod mcpservers;
pub mod mirrors;
pub mod normalize;
pub mod page;
pub mod play;
pub mod policies;
pub mod recorder;
pub mod shipped;
pub mod stage;
pub mod typed;
pub mod usage;
pub mod verdicts;
pub mod websites;
pub mod widgets;

use mimalloc::MiMalloc;

/// The allocator of `kaos-operator`, because suites and benches run the operator in their own process.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;
