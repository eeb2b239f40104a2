//! Checks that the default policy of the kind `MCPServer` in Go answers like the one in Rust, byte for byte, on every case
//! with such an object.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use kaos_operator::policies::{Candidate, ComponentOrigin, Loader};
use kaos_policy::contract::Cluster;
use kaos_policy::gate;
use kaos_policy::manifest::PolicyFile;
use kaos_policy::policy::Policy;
use kaos_tests::case;
use kaos_tests::control_plane::programs::Programs;
use kaos_tests::{play, policies, recorder};
use serde_json::Value;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../guest-policies/go/mcpserver");
const RUST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../guest-policies/mcpserver");

/// The flags of `go build` in the template's `build.sh`.
const FLAGS: [&str; 5] = ["build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-buildid="];

fn run(command: &mut Command) {
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// Builds the policy in Go and passes it through the gate.
fn built() -> Arc<Policy> {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (module, component) = (out.join("mcpserver-go.core.wasm"), out.join("mcpserver-go.wasm"));
    let mut go = Command::new("go");
    go.args(FLAGS).arg("-o").arg(&module).arg(".").current_dir(FOLDER);
    run(go.env("GOOS", "wasip1").env("GOARCH", "wasm").env("GOFLAGS", "-mod=readonly"));
    let mut operator = Command::new(Programs::operator().unwrap());
    run(operator.args(["policy", "build"]).arg(&module).arg("-o").arg(&component));
    let file = PolicyFile::parse(&fs::read_to_string(Path::new(RUST).join("policy.yaml")).unwrap()).unwrap();
    let inner = gate::Candidate { bytes: fs::read(&component).unwrap(), file, ..gate::Candidate::default() };
    // The loader compiles embedded components in this process. Other components need a child of the program.
    let candidate = Candidate { origin: ComponentOrigin::Embedded, inner };
    Loader::cached(Cluster::default()).unwrap().check(&candidate).result.unwrap()
}

#[test]
fn the_policy_for_mcp_servers_in_go_answers_like_the_one_in_rust_on_every_recorded_case() {
    let rust = policies::native().unwrap();
    let in_go: Vec<_> =
        rust.iter().map(|it| if it.id().name == "mcpserver" { built() } else { Arc::clone(it) }).collect();
    let (rust, by_rust) = recorder::recording(rust).unwrap();
    let (in_go, by_go) = recorder::recording(in_go).unwrap();
    let mut compared = 0;
    for case in case::all().unwrap() {
        let wanted = case.wanted().unwrap();
        let is_about = case.input.iter().chain(&case.update).any(|object| object["kind"] == "MCPServer");
        if !is_about || wanted.get("rejected").is_some() {
            continue;
        }
        for policies in [&rust, &in_go] {
            play::play(&case, &wanted, policies::renderers(policies, &case).unwrap()).unwrap();
        }
        let (by_rust, by_go) = (by_rust.take(), by_go.take());
        assert!(!by_rust.is_empty() && by_rust.len() == by_go.len(), "{}: questions", case.name);
        for (rust, go) in by_rust.iter().zip(&by_go) {
            assert_eq!(rust, go, "{}", case.name);
        }
        compared += 1;
    }
    assert!(compared > 30, "only {compared} cases were compared");
}

#[test]
fn the_policy_in_go_has_the_settings_and_the_samples_of_the_one_in_rust() {
    let read = |folder: &str, file: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(Path::new(folder).join(file)).unwrap()).unwrap()
    };
    for file in ["settings.schema.json", "samples/custom.json", "samples/python-string.json", "samples/registry.json"] {
        assert_eq!(read(FOLDER, file), read(RUST, file), "{file}");
    }
}
