//! `completion`: prints the script with which a shell completes commands, flags, namespaces, objects and policies. The
//! script runs the program for each completion, and the program asks the cluster.

mod candidates;
mod words;

use std::{
    ffi::OsString,
    io::{self, Write as _},
    process::ExitCode,
};

use clap::{Args, Command, ValueEnum};
use clap_complete::{
    ArgValueCompleter, CompletionCandidate,
    engine::complete,
    env::{Bash, EnvCompleter, Fish, Zsh},
};

use super::{output::Output, program::Program};
use candidates::{namespaces, objects, packages, revisions};
use words::Words;

/// The environment variable with which the completion script asks this program for candidates. The value is the name of
/// the shell.
const ASKS: &str = "KAOS_COMPLETE";
/// The last line after the candidates for kubectl. This line tells kubectl not to complete file names.
const NO_FILES: &str = ":4";

/// Arguments of `completion`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples: `source <(kaos-operator completion bash)` in ~/.bashrc, `source <(kaos-operator completion \
                  zsh)` in ~/.zshrc, and `kaos-operator completion fish | source` in config.fish. For `kubectl kaos`, \
                  link the program as kubectl_complete-kaos into a directory of PATH; kubectl's completion then \
                  runs this link."
)]
pub(super) struct Completion {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// A shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Shell {
    fn completer(self) -> &'static dyn EnvCompleter {
        match self {
            Self::Bash => &Bash,
            Self::Zsh => &Zsh,
            Self::Fish => &Fish,
        }
    }
}

impl Completion {
    /// Prints the script.
    pub(super) fn run(self, out: &mut Output) -> anyhow::Result<ExitCode> {
        let program = std::env::args_os().next().unwrap_or_default();
        let name = std::path::Path::new(&program).file_name().unwrap_or(&program).to_string_lossy().into_owned();
        let path = std::env::current_exe().map_or_else(|_| name.clone(), |path| path.to_string_lossy().into_owned());
        let mut script = Vec::new();
        self.shell.completer().write_registration(ASKS, &name, &name, &path, &mut script)?;
        out.verbatim(&String::from_utf8_lossy(&script))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Answers a shell or kubectl if they ask for completions. Returns `None` for every other run of the program.
pub(super) fn answer(command: impl FnOnce() -> Command) -> Option<ExitCode> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let (shell, words) = match (Program::called(), std::env::var(ASKS)) {
        (Program::PluginCompletion, _) => (None, arguments),
        (_, Ok(shell)) if !shell.is_empty() => {
            let shell = Shell::from_str(&shell, false).ok()?;
            (Some(shell), arguments.into_iter().skip_while(|word| word != "--").skip(1).collect())
        }
        _ => return None,
    };
    let known = Words::of(&words);
    let mut command = with_completers(command(), &known);
    let mut bytes = Vec::new();
    let written = match shell {
        Some(shell) => shell.completer().write_complete(&mut command, words, None, &mut bytes),
        None => for_kubectl(&mut command, words, &mut bytes),
    };
    // Ignores errors: a message would appear in the line that the user types. Without an answer, the shell completes
    // nothing.
    let _written = written.and_then(|()| io::stdout().write_all(&bytes));
    Some(ExitCode::SUCCESS)
}

/// Writes candidates in the form of kubectl: one for each line, with a description after a tab.
fn for_kubectl(command: &mut Command, words: Vec<OsString>, bytes: &mut Vec<u8>) -> io::Result<()> {
    let last = words.len();
    // The completion engine expects the name of the program as the first word.
    let words = std::iter::once(OsString::from("kubectl-kaos")).chain(words).collect();
    for candidate in complete(command, words, last, None)? {
        write!(bytes, "{}", candidate.get_value().to_string_lossy())?;
        if let Some(help) = candidate.get_help() {
            write!(bytes, "\t{}", help.to_string().lines().next().unwrap_or_default())?;
        }
        writeln!(bytes)?;
    }
    writeln!(bytes, "{NO_FILES}")
}

/// Adds candidates from the cluster to each argument that names a namespace, an object, a policy or a revision.
fn with_completers(command: Command, words: &Words) -> Command {
    let is_of_policy = ["rollback", "remove"].contains(&command.get_name());
    let with = |arg: clap::Arg| {
        let words = words.clone();
        let completer = match arg.get_id().as_str() {
            "namespace" | "operator_namespace" | "into" => {
                ArgValueCompleter::new(move |typed: &std::ffi::OsStr| matching(namespaces(&words), typed))
            }
            "object" => ArgValueCompleter::new(move |typed: &std::ffi::OsStr| {
                let text = typed.to_string_lossy();
                matching(objects(&words, &text, false), typed)
            }),
            "meant" => ArgValueCompleter::new(move |typed: &std::ffi::OsStr| {
                let text = typed.to_string_lossy();
                matching(objects(&words, &text, true), typed)
            }),
            "name" if is_of_policy => {
                ArgValueCompleter::new(move |typed: &std::ffi::OsStr| matching(packages(&words), typed))
            }
            "to" => ArgValueCompleter::new(move |typed: &std::ffi::OsStr| matching(revisions(&words), typed)),
            _ => return arg,
        };
        arg.add(completer)
    };
    command.mut_args(with).mut_subcommands(|verb| with_completers(verb, words))
}

fn matching(names: Vec<String>, typed: &std::ffi::OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    names.into_iter().filter(|name| name.starts_with(&*typed)).map(CompletionCandidate::new).collect()
}
