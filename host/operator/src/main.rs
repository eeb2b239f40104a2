//! The operator's binary. What it can do is in `cli/`, one file a verb.

use std::process::ExitCode;

use kaos_operator::cli::Cli;

fn main() -> ExitCode {
    Cli::main()
}
