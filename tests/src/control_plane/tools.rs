//! Running `kubectl`, `helm` and the operator's own commands, as a person would.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::Result;
use serde_json::json;

use super::ControlPlane;
use super::programs::Programs;

/// What a command came to.
#[derive(Debug)]
pub struct Ran {
    shown: String,
    /// Whether it ended with 0.
    pub ok: bool,
    /// What it printed.
    pub out: String,
    /// What it complained.
    pub err: String,
}

impl Ran {
    /// What it printed.
    ///
    /// # Panics
    /// If it failed.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub fn expect(self) -> String {
        if self.ok { self.out } else { panic!("{}\n{}\n{}", self.shown, self.out, self.err) }
    }

    /// What it complained.
    ///
    /// # Panics
    /// If it did not fail.
    pub fn expect_failure(self) -> String {
        assert!(!self.ok, "{} should have failed\n{}", self.shown, self.out);
        self.err
    }
}

impl ControlPlane {
    /// `kubectl`, as somebody who may do everything.
    pub fn kubectl(&self, arguments: &[&str]) -> Ran {
        self.kubectl_as(&self.kubeconfig(), arguments)
    }

    /// `kubectl` as whom a kubeconfig names.
    pub fn kubectl_as(&self, kubeconfig: &Path, arguments: &[&str]) -> Ran {
        self.tool("kubectl", kubeconfig, arguments)
    }

    /// Whether a user may do something in a namespace with `resource.group`, as who decides about it knows by now: some
    /// moments after a binding was made or taken away.
    ///
    /// # Panics
    /// If nobody can be asked.
    #[expect(clippy::expect_used, reason = "that is how a test fails")]
    pub fn may(&self, user: &str, verb: &str, what: &str, namespace: &str) -> bool {
        // `kubectl auth can-i` asks for the group of served types alone, and some rights are for a word that is none.
        let (resource, group) = what.split_once('.').unwrap_or((what, ""));
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": user, "groups": ["system:authenticated"], "resourceAttributes":
                {"verb": verb, "group": group, "resource": resource, "namespace": namespace}}});
        let file = self.folder().join(format!("{user}-{verb}-{what}-{namespace}.json"));
        std::fs::write(&file, review.to_string()).expect("the cluster's folder can be written to");
        let file = file.display().to_string();
        self.kubectl(&["create", "-f", &file, "-o", "jsonpath={.status.allowed}"]).expect() == "true"
    }

    /// `helm`, as somebody who may do everything.
    pub fn helm(&self, arguments: &[&str]) -> Ran {
        self.tool("helm", &self.kubeconfig(), arguments)
    }

    /// Commands of a shell, typed at the top of the repository by somebody who may do everything, with `kubectl`, `helm`
    /// and the operator on PATH.
    pub fn shell(&self, commands: &str) -> Ran {
        match self.typed(commands) {
            Ok(mut shell) => run(&mut shell),
            Err(error) => Ran { shown: commands.to_owned(), ok: false, out: String::new(), err: error.to_string() },
        }
    }

    fn typed(&self, commands: &str) -> Result<Command> {
        let programs = [self.programs.get("kubectl")?, self.programs.get("helm")?, Programs::operator()?];
        let before = programs.iter().filter_map(|program| program.parent().map(Path::to_owned));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut shell = self.prepared("bash".as_ref(), &self.kubeconfig());
        shell.env("PATH", std::env::join_paths(before.chain(std::env::split_paths(&path)))?);
        // What builds is found where it always is.
        let home = std::env::home_dir().unwrap_or_default();
        for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            shell.env(name, std::env::var_os(name).unwrap_or_else(|| home.join(folder).into()));
        }
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        shell.current_dir(top).args(["-euo", "pipefail", "-c", commands]);
        Ok(shell)
    }

    fn tool(&self, name: &str, kubeconfig: &Path, arguments: &[&str]) -> Ran {
        match self.programs.get(name) {
            Ok(program) => run(self.prepared(&program, kubeconfig).args(arguments)),
            Err(error) => Ran { shown: name.to_owned(), ok: false, out: String::new(), err: error.to_string() },
        }
    }

    /// The operator's command line, as whom a kubeconfig names.
    pub fn operator(&self, kubeconfig: &Path, arguments: &[&str]) -> Ran {
        match Programs::operator() {
            Ok(program) => run(self.prepared(&program, kubeconfig).args(arguments)),
            Err(error) => Ran { shown: String::new(), ok: false, out: String::new(), err: error.to_string() },
        }
    }

    /// A command with nothing of this process's environment but PATH.
    pub(super) fn prepared(&self, program: &Path, kubeconfig: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("KUBECONFIG", kubeconfig).env("HOME", self.folder()).current_dir(env!("CARGO_MANIFEST_DIR"));
        command
    }
}

fn run(command: &mut Command) -> Ran {
    let arguments: Vec<_> = command.get_args().map(|argument| argument.display().to_string()).collect();
    let shown = format!("{} {}", command.get_program().display(), arguments.join(" "));
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    match command.output() {
        Ok(Output { status, stdout, stderr }) => {
            Ran { shown, ok: status.success(), out: text(stdout), err: text(stderr) }
        }
        Err(error) => Ran { shown, ok: false, out: String::new(), err: error.to_string() },
    }
}
