//! Checks that the templates for overlays in Go and in Python pass their own tests, and that the gate accepts them. The
//! templates must amend plans like the template in Rust, byte for byte. The suite `policies` checks the overlay in
//! JavaScript.

use std::fs;

use kaos_policy::gate::CodeForm;
use kaos_tests::{guests, mirrors, websites};

use super::project::Project;

/// Objects that the default policies accept.
const OBJECTS: &str = concat!(
    include_str!("../../../guest-policies/overlay-template/javascript/tests/agent.yaml"),
    "---\n",
    include_str!("../../../guest-policies/overlay-template/javascript/tests/mcpserver.yaml"),
);

/// Returns what `render` prints with a component of the project's folder.
///
/// Omits comments and digests, because they depend on the component's bytes.
fn rendered(project: &Project, component: &str) -> String {
    let flags = ["--large-policies", "--status", "--set", "mirror.registry=registry.test:5000/hub"];
    let ran = project.operator(["render", "-f", "objects.yaml", "--policy", component].iter().chain(&flags));
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let text = String::from_utf8(ran.stdout).unwrap();
    let is_of_build = |line: &&str| line.starts_with("# ") || line.contains("digest: sha256:");
    text.lines().filter(|line| !is_of_build(line)).flat_map(|line| [line, "\n"]).collect()
}

/// Checks a component of the project's folder, and compares it with the overlay in Rust.
fn is_like_rust(project: &Project, component: Vec<u8>) {
    let checked = project.operator(["policy", "check", "--large-policies", "mirror.wasm"]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    let conforms = project.operator(["policy", "conform", "mirror.wasm"]);
    assert!(conforms.status.success(), "{}", String::from_utf8_lossy(&conforms.stdout));

    project.write("objects.yaml", OBJECTS);
    fs::write(project.path("rust.wasm"), guests::mirror().unwrap()).unwrap();
    let (own, rust) = (rendered(project, "mirror.wasm"), rendered(project, "rust.wasm"));
    assert!(own.contains("registry.test:5000/hub/"), "{own}");
    assert_eq!(own, rust);

    let overlay = websites::load(CodeForm::Component, component);
    mirrors::same_description(&overlay);
    mirrors::same_amendments(&overlay);
}

#[test]
fn the_overlay_in_go_passes_its_tests_and_amends_like_the_overlay_in_rust() {
    let project = Project::overlay("go");
    for arguments in [["vet", "./..."], ["test", "./..."]] {
        let ran = project.run("go", &arguments);
        assert!(ran.status.success(), "{ran:?}");
    }
    let unformatted = project.run("gofmt", &["-l", "."]);
    assert!(unformatted.status.success() && unformatted.stdout.is_empty(), "{unformatted:?}");
    let component = project.build();
    assert!(project.build() == component, "the same sources give other bytes");
    is_like_rust(&project, component);
}

#[test]
fn the_overlay_in_python_passes_its_tests_and_amends_like_the_overlay_in_rust() {
    let project = Project::overlay("python");
    let tested = project.run("sh", &["test.sh"]);
    assert!(tested.status.success(), "{tested:?}");
    let component = project.build();
    is_like_rust(&project, component);
}

#[test]
fn an_overlay_that_fails_reports_the_text_and_the_place() {
    let project = Project::overlay("go");
    let source = fs::read_to_string(project.path("policy.go")).unwrap();
    project.write("policy.go", &source.replace("\treturn below, nil\n", "\tpanic(\"the kite is gone\")\n"));
    project.build();
    project.write("objects.yaml", OBJECTS);
    let checked = project.operator(["policy", "check", "mirror.wasm"]);
    let told = String::from_utf8_lossy(&checked.stdout);
    assert!(!checked.status.success() && told.contains("the kite is gone"), "{told}");
    assert!(told.contains("mirror-policy/policy.go:"), "{told}");
}
