//! The command line, with one file for each command.

mod arguments;
mod compatibility;
mod compile_embedded;
#[cfg(feature = "completion")]
mod completion;
mod connection;
#[cfg(feature = "console")]
mod console;
mod crds;
mod decision_point;
#[cfg(feature = "demo")]
mod demo;
mod exit;
mod facts;
mod format;
mod grantable;
mod health;
mod left_out;
mod objects;
mod origins;
mod output;
mod policy;
mod program;
mod rbac;
mod release;
mod render;
mod run;
#[cfg(feature = "schema")]
mod schemas;
mod settings;
#[cfg(any(feature = "console", feature = "demo"))]
mod stop;
mod table;
mod upgrade_check;
mod variables;

#[cfg(feature = "schema")]
pub use schemas::output_schemas;

use std::{ffi::OsString, process::ExitCode};

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand, builder::Resettable};
use kaos_policy::{compile::compile_child_main, contract::HOME};

use crate::{error_text::with_causes, policies::COMPILE_CHILD};
use arguments::{ObjectWord, OutputFormat, domain, name, namespace, object_word, one_namespace};
use exit::{HELD_BACK, UNUSABLE};
use output::Output;
use program::Program;

/// Reconciles KAOS objects; sandboxed policies decide which children each object gets.
#[derive(Debug, Parser)]
#[command(name = "kaos-operator", version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run the operator on an in-memory cluster in this process, to show how it works
    #[cfg(feature = "demo")]
    Demo(demo::Demo),
    /// Run the operator against a cluster
    Run(Box<run::Run>),
    /// Print which objects are not ready, and the root causes
    Status(health::Status),
    /// Print an object with the objects that it uses, its children and its pods, each with its state
    Tree(health::Tree),
    /// Print why an object is not ready: the way to each root cause, and what to do
    Why(health::Why),
    /// Print the Events of an object and of everything below it, the oldest first
    Events(health::Events),
    /// Print the logs of an object's pods
    Logs(health::Logs),
    /// Show the objects of a cluster as a page in a browser on this machine
    #[cfg(feature = "console")]
    Console(console::Console),
    /// Print the manifests that the policies plan for objects in files, without a cluster
    Render(render::Render),
    /// Print the CustomResourceDefinitions, ready for `kubectl apply -f -`
    Crds(crds::Crds),
    /// Print the minimal rights that the operator needs, ready for `kubectl apply -f -`
    Rbac(rbac::Rbac),
    /// Print which pods an upgrade from KAOS's own operator would replace, which features would be lost, and which
    /// values to set before the upgrade
    UpgradeCheck(upgrade_check::UpgradeCheck),
    /// Remove the operator's finalizers from all objects, so that users can delete the objects without the operator
    Release(release::Release),
    /// Compile a component, within the limits in the arguments
    #[command(name = COMPILE_CHILD, hide = true)]
    CompileChild { limits: Vec<OsString> },
    /// Compile the default policies for every processor of this architecture, for a build that embeds them
    #[command(hide = true)]
    CompileEmbedded(compile_embedded::CompileEmbedded),
    /// Work on a policy
    Policy(policy::Policy),
    /// Print the script with which a shell completes commands, flags, namespaces, objects and policies
    #[cfg(feature = "completion")]
    Completion(completion::Completion),
}

impl Cli {
    /// Parses the command line and runs the command.
    pub fn main() -> ExitCode {
        let command = || Program::called().named(without_empty(Self::command()));
        #[cfg(feature = "completion")]
        if let Some(answered) = completion::answer(command) {
            return answered;
        }
        let mut command = command();
        let parsed = command.try_get_matches_from_mut(std::env::args_os());
        let error = match parsed.and_then(|matches| Self::from_arg_matches(&matches)) {
            Ok(cli) => return cli.run(),
            Err(error) => error.format(&mut command),
        };
        // Ignores an error, because there is no other channel on which to report it.
        let _told = error.print();
        // For these commands, exit code 2 means that there are changes or findings.
        let of_policy = |verb| std::env::args_os().skip(1).take(2).eq(["policy", verb]);
        let plans = of_policy("plan")
            || of_policy("replay")
            || std::env::args_os().nth(1).is_some_and(|verb| verb == "upgrade-check");
        match u8::try_from(error.exit_code()) {
            Ok(0) => ExitCode::SUCCESS,
            _ if plans => ExitCode::from(HELD_BACK),
            _ => ExitCode::from(UNUSABLE),
        }
    }

    /// Runs the command. Exit codes: 0 = success; 1 = the answer is no; 2 = the command could not answer. Some commands
    /// report changes or findings with exit code 2: these commands exit with 1 if they could not answer.
    pub fn run(self) -> ExitCode {
        let Self { verb } = self;
        let mut out = Output::stdout();
        let outcome = match verb {
            #[cfg(feature = "demo")]
            Verb::Demo(demo) => demo.run(),
            Verb::Run(run) => run.run(),
            Verb::Status(status) => status.run(&mut out),
            Verb::Tree(tree) => tree.run(&mut out),
            Verb::Why(why) => why.run(&mut out),
            Verb::Events(events) => events.run(&mut out),
            Verb::Logs(logs) => logs.run(&mut out),
            #[cfg(feature = "console")]
            Verb::Console(console) => console.run(&mut out),
            Verb::Render(render) => render.run(&mut out),
            Verb::Crds(crds) => crds.run(&mut out),
            Verb::Rbac(rbac) => rbac.run(&mut out),
            Verb::UpgradeCheck(check) => Ok(check.run(&mut out)),
            Verb::Release(release) => release.run(&mut out),
            Verb::CompileChild { limits } => Ok(compile_child_main(&limits)),
            Verb::CompileEmbedded(compile) => compile.run(&mut out),
            Verb::Policy(policy) => policy.run(&mut out),
            #[cfg(feature = "completion")]
            Verb::Completion(completion) => completion.run(&mut out),
        };
        match outcome.and_then(|code| Ok(out.flush().map(|()| code)?)) {
            Ok(code) => code,
            Err(error) => {
                output::complain("error", with_causes(error.as_ref()));
                ExitCode::from(UNUSABLE)
            }
        }
    }
}

/// Treats environment variables as unset if they are empty or contain only separators: charts write unset values and
/// empty lists this way.
fn without_empty(command: clap::Command) -> clap::Command {
    let is_nothing =
        |value: std::ffi::OsString| value.to_str().is_some_and(|text| text.trim_matches([' ', ',']).is_empty());
    let is_empty = |arg: &clap::Arg| arg.get_env().and_then(std::env::var_os).is_some_and(is_nothing);
    let arguments = |arg: clap::Arg| if is_empty(&arg) { arg.env(Resettable::Reset) } else { arg };
    command.mut_args(arguments).mut_subcommands(without_empty)
}
