//! Tests that the error shows the message and the source location of a policy's panic, even for a release build.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use kaos_policy::contract::Cluster;
use kaos_policy::gate::CodeForm;
use kaos_policy::lookup::Fixed;
use kaos_policy::policy::Stack;
use kaos_policy::render::{PassInputs, Renderer};
use kaos_tests::control_plane::programs::Programs;
use kaos_tests::{guests, websites};
use serde_json::json;

/// The modes in which the hostile guest panics, and the reported error for each.
const PANICS: [(&str, &str, &str); 3] = [
    ("expects", "needs", "spec.nothing is there"),
    ("indexes", "translate", "index out of bounds: the len is 0 but the index is 0"),
    ("panics", "translate", "the object says:  [2J long long"),
];

/// Returns the output of `render` for an object that makes the policy panic.
fn rendered(policy: &Path, does: &str) -> String {
    let mut render = Command::new(Programs::operator().unwrap())
        .args(["render", "-f", "-", "--policy"])
        .arg(policy)
        .env("XDG_CACHE_HOME", policy.with_file_name("cache"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let object = format!("{{apiVersion: example.org/v1, kind: Fuse, metadata: {{name: f}}, spec: {{does: {does}}}}}");
    render.stdin.take().unwrap().write_all(object.as_bytes()).unwrap();
    let output = render.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{does}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_panic_is_reported_with_message_and_place_with_and_without_std() {
    let folder = std::env::temp_dir().join(format!("kaos-panics-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for example in ["panics", "panics_bare"] {
        let policy = folder.join("component.wasm");
        std::fs::write(&policy, guests::example(example).unwrap()).unwrap();
        for (does, verb, message) in PANICS {
            let told = rendered(&policy, does);
            let said = told.lines().find(|line| line.contains("trapped")).unwrap_or_else(|| panic!("{told}"));
            let place = format!("{verb} trapped: panicked at sdk/examples/panics/policy.rs:");
            assert!(said.contains(&place) && said.contains(message), "{example}: {does}: {said}");
            assert!(said.len() < 1_000 && !said.contains(char::is_control), "{example}: {does}: {said}");
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_trap_is_repeated_from_its_recorded_inputs_to_the_unit_of_fuel() {
    let policy = websites::load(CodeForm::Component, guests::example("panics").unwrap());
    let renderer = Renderer::new(&Stack::single(Arc::clone(&policy)).unwrap(), &[], Cluster::default()).unwrap();
    for (does, _, _) in PANICS {
        let metadata = json!({"name": "f", "namespace": "n"});
        let object =
            json!({"apiVersion": "example.org/v1", "kind": "Fuse", "metadata": metadata, "spec": {"does": does}});
        let rendered = renderer.render(&object, &Fixed::default()).unwrap();
        let recorded = serde_json::to_string(&renderer.inputs(&rendered, |_| false)).unwrap();
        let inputs: PassInputs = serde_json::from_str(&recorded).unwrap();
        let layers = vec![(Arc::clone(&policy), Arc::new(inputs.layers[0].settings.effective()))];
        let repeated = inputs.repeat(layers).unwrap().unwrap().rendered;
        assert!(rendered.failed().is_some() && rendered.fuel > 0, "{does}: {rendered:?}");
        assert_eq!((repeated.failed(), repeated.fuel), (rendered.failed(), rendered.fuel), "{does}");
        assert_eq!(repeated.decision(), rendered.decision(), "{does}");
    }
}
