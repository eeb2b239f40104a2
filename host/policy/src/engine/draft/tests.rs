//! Shows that the contract can grow. A component for a later contract has a newer record and an optional interface.
//! Such a component passes the same gate as a component for 0.1, and both answer in the same process.

use std::{path::Path, process::Command, sync::Arc};

use serde_json::{Value, json};
use wit_component::ComponentEncoder;

use crate::{
    clock::SystemClock,
    compile::InProcessCompiler,
    contract::{Cluster, Outcome, Violation},
    engine::Engine,
    gate::{AtOnce, Bounds, Candidate, Check, Gate, KnownServer},
    limits::Limits,
    lookup::Fixed,
    policy::{Policy, Stack},
    render::{Assessed, Rendered, Renderer},
};

/// Builds the component of a folder in `tests/guests`.
fn guest(name: &str, features: &str) -> Vec<u8> {
    let guest = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guests").join(name);
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tmp/guests");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--release", "--locked", "--target", "wasm32-unknown-unknown"])
        .args(["--features", features, "--target-dir"])
        .arg(&target)
        .current_dir(guest)
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("RUSTFLAGS")
        .status()
        .unwrap();
    assert!(status.success(), "{name} does not build: is the target wasm32-unknown-unknown installed?");
    let module = std::fs::read(target.join(format!("wasm32-unknown-unknown/release/{name}.wasm"))).unwrap();
    ComponentEncoder::default().module(&module).unwrap().validate(true).encode().unwrap()
}

fn check(engine: &Engine, bytes: Vec<u8>) -> Check {
    let (compiler, clock) = (InProcessCompiler(engine.clone()), SystemClock::start());
    let gate = Gate {
        engine,
        compiler: &compiler,
        built_in: &[],
        script_engine: None,
        cache: None,
        bounds: Bounds::default(),
        limits: Limits::default(),
        kinds: &[],
        cluster: Cluster::default(),
        clock: &clock,
        turns: &AtOnce,
        server: &KnownServer::default(),
    };
    gate.check(&Candidate { bytes, ..Candidate::default() })
}

/// Returns a policy's plan and its report for an object of this kind.
fn asked(policy: &Arc<Policy>, kind: &str) -> (Rendered, Assessed) {
    let stack = Stack::single(Arc::clone(policy)).unwrap();
    let renderer = Renderer::new(&stack, &[], Cluster::default()).unwrap();
    let object: Value = json!({"apiVersion": "example.com/v1", "kind": kind,
        "metadata": {"name": "w", "namespace": "n"}, "spec": {}});
    let rendered = renderer.render(&object, &Fixed::default()).unwrap();
    let assessed = renderer.assess(&rendered, Outcome::Applied, Vec::new()).unwrap();
    (rendered, assessed)
}

#[test]
fn a_newer_record_and_an_optional_interface_are_served_next_to_the_released_contract() {
    let engine = Engine::new().unwrap();
    let released = check(&engine, guest("hostile", ""));
    let newer = check(&engine, guest("grown", ""));
    let validating = check(&engine, guest("grown", "validates"));
    let contract = |check: &Check| check.inspection.as_ref().unwrap().contract.clone();
    assert_eq!((contract(&released), contract(&newer)), ("0.1.0".to_owned(), "0.2.0-draft.1".to_owned()));
    let [released, newer, validating] = [released, newer, validating].map(|check| check.result.unwrap());

    // The host gets both plans in its own type. The newer note has a link, which a note of 0.1 does not have.
    let (plan, report) = asked(&released, "Widget");
    assert!(plan.planned().is_some(), "{:?}", plan.verdict);
    assert_eq!((plan.notes().len(), report.report.phase.is_empty()), (0, false));
    for policy in [&newer, &validating] {
        let (plan, report) = asked(policy, "Gadget");
        assert_eq!(plan.manifests()[0]["kind"], "ConfigMap", "{:?}", plan.verdict);
        assert_eq!(plan.notes()[0].message, "a newer policy made this plan (https://example.com/grown)");
        assert_eq!(report.report.message, "1 notes");
    }

    // Only a component with the optional interface can validate settings.
    let validated = |policy: &Arc<Policy>, settings: &str| policy.code().validate(settings, policy.limits());
    let wrong = Violation { path: "max".to_owned(), message: "must be at least min".to_owned() };
    assert_eq!(validated(&validating, r#"{"max":1,"min":2}"#), Some(Ok(vec![wrong])));
    assert_eq!(validated(&validating, r#"{"max":2,"min":1}"#), Some(Ok(Vec::new())));
    assert_eq!(validated(&newer, "{}"), None);
    assert_eq!(validated(&released, "{}"), None);
}
