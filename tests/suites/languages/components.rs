//! Checks that `policy build` takes a component that imports WASI, and that the result answers like the same policy
//! without WASI.

use std::fs;
use std::path::Path;
use std::process::Command;

use kaos_policy::gate::CodeForm;
use kaos_policy::native_code;
use kaos_tests::control_plane::programs::Programs;
use kaos_tests::websites;

/// Builds the template for a target whose programs are components.
fn for_wasip2() -> std::path::PathBuf {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = top.join("target/tmp/guests");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--quiet", "--release", "--target", "wasm32-wasip2", "--package", "website-policy"])
        .arg("--target-dir")
        .arg(&target)
        .current_dir(top.join("guest-policies"))
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("RUSTFLAGS")
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    target.join("wasm32-wasip2/release/website_policy.wasm")
}

#[test]
fn a_component_for_wasi_becomes_a_policy_that_imports_nothing() {
    let (component, policy) = (for_wasip2(), Path::new(env!("CARGO_TARGET_TMPDIR")).join("website-wasip2.wasm"));
    let operator = |arguments: &[&str]| Command::new(Programs::operator().unwrap()).args(arguments).output().unwrap();
    let [from, to] = [&component, &policy].map(|path| path.to_str().unwrap());
    let refused = operator(&["policy", "check", from]);
    let told = String::from_utf8_lossy(&refused.stdout);
    assert!(!refused.status.success() && told.contains("wasi:"), "{told}");

    let built = operator(&["policy", "build", from, "-o", to]);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let policy = websites::load(CodeForm::Component, fs::read(&policy).unwrap());
    let native = native_code!(kaos_policy_sdk, website_policy::Website);
    websites::same_plans(policy.code(), &native);
    websites::same_reports(policy.code(), &native);
}
