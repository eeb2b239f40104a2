//! Generates the man pages of kubectl's plugin from the definition of the command line. `tests/run man` writes the
//! pages into `target/man`, and `deploy/release` packs the pages.

use std::{env, fs, path::Path};

use clap::{Command, CommandFactory as _};
use kaos_operator::cli::Cli;

use crate::page::ROOT;

/// If this environment variable is set, the test writes the pages into `target/man`.
const WRITE: &str = "KAOS_MAN";

/// Generates all pages, and checks that each command has a page that names the plugin.
pub(crate) fn check() {
    let folder = Path::new(ROOT).join("target").join(if env::var_os(WRITE).is_some() { "man" } else { "man-tried" });
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).unwrap();
    clap_mangen::generate_to(Cli::command().name("kubectl-kaos").bin_name("kubectl kaos"), &folder).unwrap();
    let mut verbs = Vec::new();
    collect(&Cli::command(), "kubectl-kaos", &mut verbs);
    assert!(verbs.len() > 15, "{verbs:?}");
    for verb in verbs {
        let page =
            fs::read_to_string(folder.join(format!("{verb}.1"))).unwrap_or_else(|error| panic!("{verb}: {error}"));
        for part in [".SH NAME", ".SH SYNOPSIS", "kubectl"] {
            assert!(page.contains(part), "{verb} has no {part}");
        }
    }
}

fn collect(command: &Command, name: &str, verbs: &mut Vec<String>) {
    verbs.push(name.to_owned());
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        collect(verb, &format!("{name}-{}", verb.get_name()), verbs);
    }
}
