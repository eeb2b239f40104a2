//! Makes and builds projects in a folder outside of this repository, as the author of a policy does.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use kaos_tests::control_plane::programs::Programs;

/// A project of `policy new`. Dropping it removes its folder.
pub(crate) struct Project {
    folder: PathBuf,
    name: &'static str,
}

impl Project {
    /// Makes a project from the template in this language. The names of the policy and of the kind are those of the
    /// template in Rust.
    pub(crate) fn new(language: &str) -> Self {
        Self::made("website", language, &["--kind", "Website", "--api-version", "example.com/v1"])
    }

    /// Makes a project from the template for overlays in this language.
    ///
    /// The project has the name of the template in Rust.
    pub(crate) fn overlay(language: &str) -> Self {
        Self::made("mirror", language, &["--overlay"])
    }

    fn made(name: &'static str, language: &str, more: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("kaos-languages-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let project = Self { folder, name };
        let dir = project.path("").to_string_lossy().into_owned();
        let made = project.operator(["policy", "new", name, "--language", language, "--dir", &dir].iter().chain(more));
        assert!(made.status.success(), "{made:?}");
        project
    }

    /// Returns the path of a file of the project.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    /// Writes a file of the project.
    pub(crate) fn write(&self, file: &str, text: &str) {
        fs::write(self.path(file), text).unwrap();
    }

    /// Runs the operator's program.
    pub(crate) fn operator<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Output {
        Command::new(Programs::operator().unwrap()).args(arguments).current_dir(&self.folder).output().unwrap()
    }

    /// Runs a program in the project's folder. Forbids Go to download modules, because a project contains all modules
    /// that it needs.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.folder).env("KAOS_OPERATOR", Programs::operator().unwrap());
        command.env("COMPONENTIZE_PY", componentize_py());
        command.env("GOFLAGS", "-mod=readonly").env("GOPROXY", "off").output().unwrap()
    }

    /// Runs `build.sh` and returns the component.
    pub(crate) fn build(&self) -> Vec<u8> {
        let built = self.run("sh", &["build.sh"]);
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        fs::read(self.path(&format!("{}.wasm", self.name))).unwrap()
    }
}

/// Returns the path of componentize-py, which `tests/run languages` installs.
pub(crate) fn componentize_py() -> PathBuf {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/componentize-py/bin/componentize-py");
    std::path::absolute(tools).unwrap()
}

impl Drop for Project {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
