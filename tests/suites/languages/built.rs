//! Builds two policies in each language: the template of `policy new`, and the default policy of the kind `MCPServer`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kaos_policy::gate::CodeForm;
use kaos_tests::control_plane::programs::Programs;
use kaos_tests::guests;

use super::project::{Project, componentize_py};

const GUESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../guest-policies");

/// The flags of `go build` in the template's `build.sh`.
const FLAGS: [&str; 5] = ["build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-buildid="];

/// A policy in one language.
pub(crate) struct Built {
    pub(crate) language: &'static str,
    pub(crate) form: CodeForm,
    pub(crate) bytes: Vec<u8>,
}

impl Built {
    fn component(language: &'static str, bytes: Vec<u8>) -> Self {
        Self { language, form: CodeForm::Component, bytes }
    }

    fn script(file: &str) -> Self {
        let bytes = fs::read(Path::new(GUESTS).join(file)).unwrap();
        Self { language: "JavaScript", form: CodeForm::Script, bytes }
    }
}

/// Builds the template in each language.
pub(crate) fn templates() -> [Built; 4] {
    [
        Built::component("Rust", in_rust("website-policy", "website_policy")),
        Built::component("Go", Project::new("go").build()),
        Built::script("template/javascript/policy.js"),
        Built::component("Python", Project::new("python").build()),
    ]
}

/// Builds the policy for MCPServers in each language.
///
/// `name` is a part of the files' names, because tests that run in parallel need different files.
pub(crate) fn mcpservers(name: &str) -> [Built; 4] {
    [
        Built::component("Rust", in_rust("kaos-mcpserver", "kaos_mcpserver")),
        Built::component("Go", mcpserver_in_go(name)),
        Built::script("mcpserver/policy.js"),
        Built::component("Python", mcpserver_in_python(name)),
    ]
}

fn run(command: &mut Command) {
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

fn out(file: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(file)
}

/// Turns a module into a component, as an author does.
fn component_of(module: &Path, name: &str) -> Vec<u8> {
    let component = out(&format!("{name}.wasm"));
    run(Command::new(Programs::operator().unwrap()).args(["policy", "build"]).arg(module).arg("-o").arg(&component));
    fs::read(&component).unwrap()
}

fn in_rust(package: &str, module: &str) -> Vec<u8> {
    let bytes = guests::build("guest-policies", &["--package", package], &format!("{module}.wasm")).unwrap();
    let core = out(&format!("{module}-rust.core.wasm"));
    fs::write(&core, bytes).unwrap();
    component_of(&core, &format!("{module}-rust"))
}

/// Builds the policy for MCPServers in Go.
pub(crate) fn mcpserver_in_go(name: &str) -> Vec<u8> {
    let module = out(&format!("{name}-mcpserver-go.core.wasm"));
    let mut go = Command::new("go");
    go.args(FLAGS).arg("-o").arg(&module).arg(".").current_dir(Path::new(GUESTS).join("go/mcpserver"));
    // Forbid downloads: `tests/run languages` has already downloaded the modules, and a test must not use the network.
    run(go.env("GOOS", "wasip1").env("GOARCH", "wasm").env("GOFLAGS", "-mod=readonly").env("GOPROXY", "off"));
    component_of(&module, &format!("{name}-mcpserver-go"))
}

/// Builds the policy for MCPServers in Python.
pub(crate) fn mcpserver_in_python(name: &str) -> Vec<u8> {
    let component = out(&format!("{name}-python.wasm"));
    let mut build = Command::new("sh");
    build.arg("build.sh").arg(&component).current_dir(Path::new(GUESTS).join("python/mcpserver"));
    build.env("COMPONENTIZE_PY", componentize_py()).env("PYTHON", componentize_py().with_file_name("python"));
    run(build.env("PYTHONDONTWRITEBYTECODE", "1"));
    fs::read(&component).unwrap()
}
