//! The operator's binary. `cli/` contains the commands of the program, with one file for each command.

use std::process::ExitCode;

use kaos_operator::cli::Cli;

fn main() -> ExitCode {
    Cli::main()
}
