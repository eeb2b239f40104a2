//! Generates `docs/reference/flags.md`. The page lists every command, flag and variable of the binary. The list comes
//! from the binary's definition of its command line.

use std::fmt::Write as _;

use clap::{Arg, Command, CommandFactory as _};
use kaos_operator::cli::Cli;

use crate::page::{code, head, prose, table};

/// The environment variables that the binary reads and that have no flag. Each entry has the name and a description.
pub(crate) const OTHERS: [(&str, &str); 9] = [
    ("KUBECONFIG", "Kubeconfig files, read as kubectl reads them; `--kubeconfig` takes precedence."),
    (
        "KUBERNETES_SERVICE_HOST",
        "In a pod, with `KUBERNETES_SERVICE_PORT`: address of the API server, used if no kubeconfig is given.",
    ),
    ("KUBERNETES_SERVICE_PORT", "See `KUBERNETES_SERVICE_HOST`."),
    ("HOSTNAME", "Name with which the process holds the Lease and writes Events; in a pod, the pod's name."),
    ("NO_COLOR", "`demo` prints without colours if this variable is set and not empty."),
    (
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "Endpoint of the collector to which `run` sends traces. `run` also reads \
         the other variables of OpenTelemetry's SDK and of its OTLP exporter: `OTEL_EXPORTER_OTLP_HEADERS`, \
         `OTEL_TRACES_SAMPLER`, `OTEL_BSP_SCHEDULE_DELAY`, `OTEL_SDK_DISABLED` and so on.",
    ),
    (
        "OTEL_RESOURCE_ATTRIBUTES",
        "Attributes of the operator in the spans that `run` sends. `OTEL_SERVICE_NAME` also sets an attribute of the \
         operator in these spans.",
    ),
    (
        "KAOS_EMBEDDED_POLICIES",
        "At build time: a folder of prebuilt default policies to embed, instead of building them.",
    ),
    (
        "KAOS_EMBEDDED_CODE",
        "At build time: a folder that `kaos-operator compile-embedded FOLDER` of an earlier build of the same sources \
         wrote. With this variable, the build embeds the compiled code from the folder, so the program need not \
         compile the default policies at each start.",
    ),
];

/// Generates the page.
pub(crate) fn page() -> String {
    let mut cli = Cli::command();
    cli.build();
    let mut page = head("Flags and variables", "host/operator/src/cli");
    page += "The commands and flags of `kaos-operator`. `kaos-operator COMMAND --help` prints the same texts.\n\n";
    let verbs = verbs(&cli, "");
    for (name, verb) in &verbs {
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(page, "- [{name}](#{}): {}", name.replace(' ', "-"), prose(&about));
    }
    page += "\nExit codes, unless a command has its own: 0 = success; 1 = the result is negative, for example a \
             refused object; 2 = the command could not get a result.\n\n";
    for (name, verb) in &verbs {
        page += &of(name, verb);
    }
    page += "## Variables without a flag\n\n`run`, `render` and `demo` also read settings of the default policies from \
             variables: [settings.md](settings.md).\n\n";
    let rows = OTHERS.map(|(name, meaning)| vec![code(name), meaning.to_owned()]);
    page += &table(&["Variable", "Meaning"], &rows);
    page.trim_end().to_owned() + "\n"
}

/// Returns the commands with their full names, such as `policy plan`. Leaves out commands that only group other
/// commands.
fn verbs<'a>(command: &'a Command, above: &str) -> Vec<(String, &'a Command)> {
    let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help");
    shown
        .flat_map(|verb| {
            let name = format!("{above} {}", verb.get_name()).trim().to_owned();
            let below = verbs(verb, &name);
            if below.is_empty() { vec![(name, verb)] } else { below }
        })
        .collect()
}

fn of(name: &str, verb: &Command) -> String {
    let mut text = format!("## {name}\n\n");
    if let Some(about) = verb.get_long_about().or_else(|| verb.get_about()) {
        let _ = writeln!(text, "{}.\n", prose(&about.to_string()).trim_end_matches('.'));
    }
    let usage = verb.clone().render_usage().to_string();
    let _ = writeln!(text, "```text\n{}\n```\n", usage.trim_start_matches("Usage: "));
    let arguments: Vec<&Arg> = verb
        .get_arguments()
        .filter(|it| !it.is_hide_set() && !["help", "version"].contains(&it.get_id().as_str()))
        .collect();
    if !arguments.is_empty() {
        let rows: Vec<Vec<String>> = arguments.iter().map(|argument| row(argument)).collect();
        text += &table(&["Flag", "Variable", "Default", "Meaning"], &rows);
    }
    for after in [verb.get_after_help(), verb.get_after_long_help()].into_iter().flatten().take(1) {
        let _ = writeln!(text, "{}\n", prose(&after.to_string()));
    }
    text
}

fn row(argument: &Arg) -> Vec<String> {
    let values = argument.get_value_names().unwrap_or_default();
    let takes = argument.get_action().takes_values();
    // Write an optional value with `=`, because the parser accepts such a value only after `=`.
    let value = match values.join(" ") {
        _ if !takes => String::new(),
        value if argument.is_require_equals_set() => format!("[={value}]"),
        value => format!(" {value}"),
    };
    let flag = match (argument.get_long(), argument.get_short()) {
        (Some(long), Some(short)) => format!("-{short}, --{long}{value}"),
        (Some(long), None) => format!("--{long}{value}"),
        (None, Some(short)) => format!("-{short}{value}"),
        (None, None) => value,
    };
    let environment = argument.get_env().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let defaults: Vec<_> = argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    let default = if takes { defaults.join(",") } else { String::new() };
    let help = argument.get_long_help().or_else(|| argument.get_help()).map(ToString::to_string);
    let mut meaning = prose(&help.unwrap_or_default());
    if argument.is_required_set() {
        meaning += " · required";
    }
    let choices: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|choice| takes && !choice.is_hide_set() && !["true", "false"].contains(&choice.get_name()))
        .map(|choice| match choice.get_help() {
            Some(help) => format!("{} ({})", code(choice.get_name()), uncapitalised(&prose(&help.to_string()))),
            None => code(choice.get_name()),
        })
        .collect();
    if !choices.is_empty() {
        let _ = write!(meaning, " · {}", choices.join(", "));
    }
    if matches!(argument.get_action(), clap::ArgAction::Append) && !meaning.contains("several times") {
        meaning += " · can be given several times";
    }
    vec![code(flag.trim()), code(&environment), code(&default), meaning]
}

fn uncapitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}
