//! Replaces the authors' verbs in a program that was built without these verbs. Instead of running an authors' verb,
//! the program prints an error message that explains how to get the authors' verbs.

use std::{ffi::OsString, process::ExitCode};

use anyhow::bail;
use clap::Args;

/// The arguments of a verb that this build does not contain.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(super) struct NotBuiltIn {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _arguments: Vec<OsString>,
}

/// Returns an error with the remedy.
pub(super) fn refuse() -> anyhow::Result<ExitCode> {
    bail!(
        "this kaos-operator was built without the verbs for authors of policies: install it with these verbs: \
         cargo install --locked --path host/operator --features authoring"
    )
}
