//! The operator's binary. `cli/` contains the verbs of the program, with one file for each verb.

use std::process::ExitCode;

use kaos_operator::cli::Cli;

fn main() -> ExitCode {
    Cli::main()
}
