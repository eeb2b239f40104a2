//! Runs the program as the kubectl plugin `kubectl kaos`, and tests the completion in shells.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs,
    io::Write as _,
    os::unix::fs::symlink,
    process::{Command, Stdio},
};

use crate::{
    stage::{Stage, package, team},
    support::{Folder, PROGRAM, Ran, finish, isolated},
};
use serde_json::json;

/// Creates a link to the program for each name under which a user can run it. Returns the folder with the links.
fn linked(folder: &Folder) -> String {
    let bin = format!("{}/bin", folder.path());
    fs::create_dir_all(&bin).unwrap();
    for name in ["kaos-operator", "kubectl-kaos", "kubectl_complete-kaos"] {
        symlink(PROGRAM, format!("{bin}/{name}")).unwrap();
    }
    bin
}

/// Returns a command for `program`, with the folder `bin` first in its PATH, and with the kubeconfig of the stage.
fn in_path(program: &str, bin: &str, stage: &Stage) -> Command {
    let mut command = isolated(program);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{bin}:{path}")).env("KUBECONFIG", &stage.kubeconfig).env("HOME", stage.folder.path());
    command
}

fn is_there(program: &str) -> bool {
    let found = Command::new(program).arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_err() {
        eprintln!("no {program} on this machine: not tested with it");
    }
    found.is_ok()
}

async fn ran(mut command: Command) -> Ran {
    tokio::task::spawn_blocking(move || finish(&mut command, "")).await.unwrap()
}

/// Starts a cluster with three Agents and an installed package.
async fn stage(name: &str) -> Stage {
    let stage = Stage::start(name).await;
    team(&stage);
    stage.revision("agents-1", &package("x:1"), 1, &json!({"state": "Active", "policy": "agent"}));
    stage
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plugin_names_itself_kubectl_kaos_in_usage_and_remedies() {
    let stage = stage("plugin").await;
    let bin = linked(&stage.folder);
    let mut help = in_path(&format!("{bin}/kubectl-kaos"), &bin, &stage);
    help.args(["why", "--help"]);
    let told = ran(help).await;
    assert!(told.stdout.contains("Usage: kubectl kaos why "), "{}", told.stdout);
    if !is_there("kubectl") {
        return;
    }
    let mut why = in_path("kubectl", &bin, &stage);
    why.args(["kaos", "logs", "agent/a", "-n", "team"]);
    let told = ran(why).await;
    assert_eq!(told.code, 2, "{}{}", told.stdout, told.stderr);
    assert!(told.stderr.contains("`kubectl kaos why agent/a -n team` shows the reason"), "{}", told.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_gets_candidates_for_verbs_flags_namespaces_objects_and_policies() {
    let stage = stage("candidates").await;
    let bin = linked(&stage.folder);
    let cases: [(&[&str], &[&str]); 8] = [
        (&["sta"], &["status"]),
        (&["policy", "ro"], &["rollback"]),
        (&["why", "-n", ""], &["default", "kaos-system", "team"]),
        (&["why", "age"], &["agent/"]),
        (&["status", "-n", "team", "modela"], &["modelapi", "modelapi/"]),
        (&["tree", "-n", "team", "agents/"], &["agents/a", "agents/b", "agents/c"]),
        (&["policy", "remove", ""], &["agent", "policy-agent-settings"]),
        (&["policy", "rollback", "agent", "--to", ""], &["agents-1"]),
    ];
    for (words, expected) in cases {
        let mut command = in_path(&format!("{bin}/kubectl_complete-kaos"), &bin, &stage);
        command.args(words);
        let told = ran(command).await;
        let names: Vec<&str> = told.stdout.lines().map(|line| line.split('\t').next().unwrap()).collect();
        let (end, names) = names.split_last().expect("an answer");
        assert_eq!(*end, ":4", "{words:?}: {}", told.stdout);
        for name in expected {
            assert!(names.contains(name), "{words:?}: {name} in {names:?}{}", told.stderr);
        }
    }
    // Without the right to list objects, the completion shows neither candidates nor an error in the user's command
    // line.
    stage.cluster.authorise(|attempt| attempt.resource.is_empty());
    let mut command = in_path(&format!("{bin}/kubectl_complete-kaos"), &bin, &stage);
    command.args(["why", "-n", "team", "agent/"]);
    let told = ran(command).await;
    assert_eq!((told.code, told.stdout.as_str(), told.stderr.as_str()), (0, ":4\n", ""));
}

/// Runs an interactive shell on a pseudo-terminal, and types `setup` and `keys`. Returns what the terminal shows.
async fn typed(
    shell: &'static str,
    arguments: &'static str,
    setup: &str,
    keys: &str,
    bin: &str,
    stage: &Stage,
) -> String {
    let mut command = in_path("script", bin, stage);
    command.args(["-qfec", &format!("{shell} {arguments}"), "/dev/null"]).env("TERM", "dumb").env("PS1", "$ ");
    let input = format!("{setup}\n{keys}\nexit\n");
    tokio::task::spawn_blocking(move || {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        // Keep the input open until the shell ends by `exit`: at the end of the input, it would end before it shows the
        // answer.
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        let shown = child.wait_with_output().unwrap().stdout;
        drop(stdin);
        String::from_utf8_lossy(&shown).into_owned()
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn shells_complete_what_a_user_types() {
    let stage = stage("shells").await;
    let bin = linked(&stage.folder);
    // Each tab completes a word: the commands `policy` and `list`, and the namespace `team`.
    let keys = "kaos-operator polic\tlis\t-n tea\t\necho DONE";
    let shells = [
        ("bash", "--norc --noprofile -i", "source <(kaos-operator completion bash)"),
        ("zsh", "-f -i", "autoload -U compinit; compinit -u; source <(kaos-operator completion zsh)"),
        ("fish", "--no-config -i", "kaos-operator completion fish | source"),
    ];
    for (shell, arguments, setup) in shells {
        if !is_there(shell) || !is_there("script") {
            continue;
        }
        let shown = typed(shell, arguments, setup, keys, &bin, &stage).await;
        assert!(shown.contains("No policies from namespace team are installed"), "{shell}: {shown}");
    }
}
