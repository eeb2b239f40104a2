//! The names under which users call the program. `kubectl` runs a program `kubectl-kaos` for `kubectl kaos`, and
//! `kubectl_complete-kaos` for its completions.

use std::{ffi::OsStr, path::Path, sync::LazyLock};

use clap::Command;

/// The name of the program itself.
const OPERATOR: &str = "kaos-operator";
/// The name of the plugin, and the command that runs it.
const PLUGIN: (&str, &str) = ("kubectl-kaos", "kubectl kaos");
/// The name under which kubectl asks for completions of the plugin.
#[cfg(feature = "completion")]
const PLUGIN_COMPLETION: &str = "kubectl_complete-kaos";

/// How the user called the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    /// The user ran the program itself, under any file name.
    Operator,
    /// kubectl ran the program as its plugin.
    Plugin,
    /// kubectl ran the program for completions of the plugin.
    #[cfg(feature = "completion")]
    PluginCompletion,
}

static CALLED: LazyLock<Program> = LazyLock::new(|| Program::of(std::env::args_os().next().as_deref()));

impl Program {
    /// Returns how the user called this process.
    pub(super) fn called() -> Self {
        *CALLED
    }

    fn of(path: Option<&OsStr>) -> Self {
        let stem = path.map(Path::new).and_then(Path::file_stem).and_then(|stem| stem.to_str());
        match stem {
            Some(name) if name == PLUGIN.0 => Self::Plugin,
            #[cfg(feature = "completion")]
            Some(PLUGIN_COMPLETION) => Self::PluginCompletion,
            _ => Self::Operator,
        }
    }

    /// Returns the words that run the program, for messages.
    pub(super) fn command(self) -> &'static str {
        if self == Self::Operator { OPERATOR } else { PLUGIN.1 }
    }

    /// Sets the name in help texts and errors to the name under which the user called the program.
    pub(super) fn named(self, command: Command) -> Command {
        if self == Self::Operator { command } else { command.name(PLUGIN.0).bin_name(PLUGIN.1) }
    }
}

/// Replaces the program's name in a text by the words with which the user runs the program.
pub(super) fn as_called(text: &str) -> String {
    text.replace(OPERATOR, Program::called().command())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_file_decides_how_the_program_was_called() {
        let of = |path: &str| Program::of(Some(OsStr::new(path)));
        assert_eq!(of("/usr/local/bin/kubectl-kaos"), Program::Plugin);
        assert_eq!(of("kubectl-kaos.exe"), Program::Plugin);
        for path in ["kaos-operator", "/tmp/operator", "/", "kubectl"] {
            assert_eq!(of(path), Program::Operator, "{path}");
        }
        assert_eq!(Program::Plugin.command(), "kubectl kaos");
    }
}
