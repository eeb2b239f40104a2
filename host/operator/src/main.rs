//! The operator's binary. `cli/` contains the commands of the program, with one file for each command.

use std::process::ExitCode;

use kaos_operator::cli::Cli;
use mimalloc::MiMalloc;

/// The allocator of musl has one lock for all threads, and passes allocate much.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // With huge pages, the program takes 1.5 times as much memory. If the system refuses, the program still works.
    #[cfg(target_os = "linux")]
    let _refused = rustix::thread::disable_transparent_huge_pages(true);
    Cli::main()
}
