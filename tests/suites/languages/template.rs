//! Checks that the template in Go passes its own tests, and answers like the template in Rust, byte for byte.

use kaos_policy::gate::CodeForm;
use kaos_policy::native_code;
use kaos_tests::websites;

use super::project::Project;

#[test]
fn the_template_in_go_answers_like_the_template_in_rust() {
    let project = Project::new("go");
    let component = project.build();
    let policy = websites::load(CodeForm::Component, component.clone());
    let rust = native_code!(kaos_policy_sdk, website_policy::Website);
    websites::same_plans(policy.code(), &rust);
    websites::same_reports(policy.code(), &rust);
    let again = project.build();
    assert!(again == component, "the same sources give other bytes");
}

#[test]
fn the_template_in_go_passes_its_own_tests_and_the_checks_of_go() {
    let project = Project::new("go");
    for arguments in [["vet", "./..."], ["test", "./..."]] {
        let ran = project.run("go", &arguments);
        assert!(ran.status.success(), "{ran:?}");
    }
    let unformatted = project.run("gofmt", &["-l", "."]);
    assert!(unformatted.status.success() && unformatted.stdout.is_empty(), "{unformatted:?}");
}
