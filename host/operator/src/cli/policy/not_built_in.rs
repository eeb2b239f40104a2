//! Replaces the authors' commands in a program that was built without these commands. Instead of running an authors'
//! command, the program prints an error message that explains how to get the authors' commands.

use std::{ffi::OsString, process::ExitCode};

use anyhow::bail;
use clap::Args;

/// The arguments of a command that this build does not contain.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(super) struct NotBuiltIn {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _arguments: Vec<OsString>,
}

/// Returns an error with the remedy.
pub(super) fn refuse() -> anyhow::Result<ExitCode> {
    bail!(
        "this kaos-operator was built without the commands for authors of policies: install it with these commands: \
         cargo install --locked --path host/operator --features authoring"
    )
}
