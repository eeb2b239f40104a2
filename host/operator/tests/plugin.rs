//! Runs the program as kubectl's plugin `kubectl kaos`, tests the completion in shells, and packs the plugin for krew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    fs,
    io::Write as _,
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Stdio},
};

use crate::{
    stage::{Stage, package, team},
    support::{Folder, PROGRAM, Ran, finish, isolated},
};
use serde_json::{Value, json};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Creates links to the program in the stage's folder, one for each name of the program. Returns the folder of the
/// links.
fn linked(folder: &Folder) -> String {
    let bin = format!("{}/bin", folder.path());
    fs::create_dir_all(&bin).unwrap();
    for name in ["kaos-operator", "kubectl-kaos", "kubectl_complete-kaos"] {
        symlink(PROGRAM, format!("{bin}/{name}")).unwrap();
    }
    bin
}

/// Returns a program with the linked names first in its PATH, and the stage's kubeconfig.
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
    // Without the right to list objects, the completion shows no candidates, and no error in the user's command line.
    stage.cluster.authorise(|attempt| attempt.resource.is_empty());
    let mut command = in_path(&format!("{bin}/kubectl_complete-kaos"), &bin, &stage);
    command.args(["why", "-n", "team", "agent/"]);
    let told = ran(command).await;
    assert_eq!((told.code, told.stdout.as_str(), told.stderr.as_str()), (0, ":4\n", ""));
}

/// Types into an interactive shell on a pseudo-terminal, and returns what the terminal shows.
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
        // Keep the input open until the shell ends: if the input ended earlier, the shell would end before it shows the
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
    // Tabs complete each command line: the verb, the namespace, and the only Agent whose name begins with `b`.
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

#[test]
fn the_release_command_packs_the_plugin_and_writes_the_manifest_for_krew() {
    let folder = Folder::new("krew");
    let root = folder.path();
    for file in [
        "deploy/publish",
        "Cargo.toml",
        "LICENSE",
        "deploy/helm/kaos-operator/Chart.yaml",
        "deploy/helm/kaos-operator/values.yaml",
    ] {
        let to = Path::new(&root).join(file);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(Path::new(ROOT).join(file), to).unwrap();
    }
    let publish = |arguments: &[&str]| {
        let mut command = isolated(&format!("{root}/deploy/publish"));
        finish(command.arg("plugin").args(arguments), "")
    };
    let version = concat!("v", env!("CARGO_PKG_VERSION"));
    let program = format!("amd64={PROGRAM}");
    let told = publish(&[version, &program]);
    assert!(told.code == 1 && told.stderr.contains("run tests/run man"), "{}", told.stderr);
    folder.write("target/man/kubectl-kaos.1", "a page");
    assert_eq!(publish(&["v9.9.9", &program]).code, 2);
    assert_eq!(publish(&[version, "mips=/bin/sh"]).code, 2);
    let told = publish(&[version, &program, "arm64=/bin/sh"]);
    assert_eq!(told.code, 0, "{}{}", told.stdout, told.stderr);
    let manifest = fs::read_to_string(format!("{root}/deploy/krew/kaos.yaml")).unwrap();
    let manifest: Value = serde_saphyr::from_str(&manifest).unwrap();
    // The rules of krew-index: the name, at most 50 characters, and an https address for each platform.
    assert_eq!(manifest["apiVersion"], "krew.googlecontainertools.github.com/v1alpha2");
    assert_eq!((&manifest["kind"], &manifest["metadata"]["name"]), (&json!("Plugin"), &json!("kaos")));
    let spec = &manifest["spec"];
    assert_eq!(spec["version"], version);
    assert!(spec["shortDescription"].as_str().unwrap().len() <= 50);
    let platforms = spec["platforms"].as_array().unwrap();
    assert_eq!(platforms.len(), 2, "{manifest:#}");
    for platform in platforms {
        let (architecture, uri) = (&platform["selector"]["matchLabels"]["arch"], platform["uri"].as_str().unwrap());
        let file = format!("kubectl-kaos-linux-{}.tar.gz", architecture.as_str().unwrap());
        assert!(uri.starts_with("https://") && uri.ends_with(&format!("/{version}/{file}")), "{uri}");
        let path = format!("{root}/target/plugin/{file}");
        let sum = finish(isolated("sha256sum").arg(&path), "").stdout;
        assert_eq!(sum.split(' ').next(), platform["sha256"].as_str(), "{file}");
        let listed = finish(isolated("tar").args(["-tzf", &path]), "").stdout;
        for part in [platform["bin"].as_str().unwrap(), "LICENSE", "man/kubectl-kaos.1"] {
            assert!(listed.lines().any(|line| line.trim_start_matches("./") == part), "{part}: {listed}");
        }
    }
}
