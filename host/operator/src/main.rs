//! The operator's binary. `cli/` contains the commands of the program, with one file for each command.

use std::process::ExitCode;

use kaos_operator::cli::Cli;
use mimalloc::MiMalloc;

/// The allocator of musl has one lock for all threads, and passes allocate much.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    Cli::main()
}
