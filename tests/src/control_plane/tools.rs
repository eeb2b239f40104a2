//! Runs `kubectl`, `helm` and the operator's own commands like a user.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::Result;
use serde_json::json;

use super::ControlPlane;
use super::programs::{self, Programs};

/// The result of a command.
#[derive(Debug)]
pub struct Ran {
    shown: String,
    /// Whether the command exited with 0.
    pub ok: bool,
    /// The command's standard output.
    pub out: String,
    /// The command's standard error.
    pub err: String,
}

impl Ran {
    /// Returns the standard output.
    ///
    /// # Panics
    /// If the command failed.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub fn expect(self) -> String {
        if self.ok { self.out } else { panic!("{}\n{}\n{}", self.shown, self.out, self.err) }
    }

    /// Returns the standard error.
    ///
    /// # Panics
    /// If the command succeeded.
    pub fn expect_failure(self) -> String {
        assert!(!self.ok, "{} should have failed\n{}", self.shown, self.out);
        self.err
    }
}

impl ControlPlane {
    /// Runs `kubectl` as the administrator.
    pub fn kubectl(&self, arguments: &[&str]) -> Ran {
        self.kubectl_as(&self.kubeconfig(), arguments)
    }

    /// Runs `kubectl` as the user of a kubeconfig.
    pub fn kubectl_as(&self, kubeconfig: &Path, arguments: &[&str]) -> Ran {
        self.tool("kubectl", kubeconfig, arguments)
    }

    /// Returns whether `user` has the right to use `verb` on the type `what` (`resource.group`) in `namespace`. After a
    /// test has changed a binding, it takes some moments until the API server's answer is right.
    ///
    /// # Panics
    /// If the API server does not respond.
    #[expect(clippy::expect_used, reason = "that is how a test fails")]
    pub fn may(&self, user: &str, verb: &str, what: &str, namespace: &str) -> bool {
        // `kubectl auth can-i` accepts only groups that the API server serves. But the operator also has rights for
        // types that the API server does not serve, so ask the authorizer directly.
        let (resource, group) = what.split_once('.').unwrap_or((what, ""));
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": user, "groups": ["system:authenticated"], "resourceAttributes":
                {"verb": verb, "group": group, "resource": resource, "namespace": namespace}}});
        let file = self.folder().join(format!("{user}-{verb}-{what}-{namespace}.json"));
        std::fs::write(&file, review.to_string()).expect("the cluster's folder can be written to");
        let file = file.display().to_string();
        self.kubectl(&["create", "-f", &file, "-o", "jsonpath={.status.allowed}"]).expect() == "true"
    }

    /// Runs `helm` as the administrator.
    pub fn helm(&self, arguments: &[&str]) -> Ran {
        self.tool("helm", &self.kubeconfig(), arguments)
    }

    /// Runs shell commands as the administrator, in the repository's top folder. `kubectl`, `helm` and the operator are
    /// on PATH.
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
        // For these commands, `HOME` is a folder of the cluster, but cargo and rustup need their folders in the user's
        // own home folder.
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

    /// Runs the operator's command line as the user of a kubeconfig.
    pub fn operator(&self, kubeconfig: &Path, arguments: &[&str]) -> Ran {
        match Programs::operator() {
            Ok(program) => run(self.prepared(&program, kubeconfig).args(arguments)),
            Err(error) => Ran { shown: String::new(), ok: false, out: String::new(), err: error.to_string() },
        }
    }

    /// Prepares a command that inherits only PATH and GOGC from this process's environment. The commands of all
    /// clusters share a cache of compiled policies.
    pub(super) fn prepared(&self, program: &Path, kubeconfig: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(std::env::var_os("GOGC").map(|percent| ("GOGC", percent)));
        command.env("XDG_CACHE_HOME", programs::cache());
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
