//! The operator's binary. `cli/` contains its verbs, one file for each.

use std::process::ExitCode;

use kaos_operator::cli::Cli;

fn main() -> ExitCode {
    Cli::main()
}
