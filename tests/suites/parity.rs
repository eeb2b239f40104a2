//! Checks that the default policies behave like KAOS's Go operator, except for the deviations that a case describes.
//!
//! The test runs every case twice: with the policies compiled into this test, and with the components in the operator's
//! binary. Both runs must return equal bytes. If a case must deviate from the recording, its author writes the
//! deviation into `desired.yaml`. `UPDATE_GOLDEN=1` updates only the fuel, in `golden/fuel.json`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kaos_policy::policy::Policy;
use kaos_tests::case::{self, Case};
use kaos_tests::play::{self, Ended};
use kaos_tests::policies;
use kaos_tests::recorder::{self, Answers};
use serde_json::Value;
use similar::TextDiff;

/// The cases whose result depends on an API server or on a write. This test skips these cases, because it has no API
/// server.
const ONLINE: [(&str, &str); 1] = [(
    "agent-adopt-foreign-same-labels",
    "the operator decides only at the apply whether to take over the foreign \
        object",
)];

/// The cases whose deliberate deviation another test checks.
///
/// Each entry has the name of a case, and describes the other test.
const ELSEWHERE: [(&str, &str); 3] = [
    (
        "agent-adopt-foreign-same-labels",
        "suite reconcile: a foreign deployment with labels of the operator stays untouched",
    ),
    (
        "agent-rejected-podspec-no-containers",
        "the API server's validation: crds/tests, and kubectl in the end-to-end tests",
    ),
    ("modelapi-proxy-models-update", "the hash that the host adds: suite reconcile, rows B"),
];

#[test]
fn every_wanted_deviation_is_checked_by_a_test() {
    for case in case::all().expect("the cases are readable") {
        let is_elsewhere = ELSEWHERE.iter().any(|(name, _)| case.name == *name);
        let is_seen = case.deviation().exists() || !case.about.conditions.is_empty();
        assert!(!(is_elsewhere && is_seen), "{case}: this suite already sees the deviation", case = case.name);
        // A case that an author wrote by hand needs no description of a deviation, because it has no recording from
        // which it could deviate.
        let is_written = case.about.desired.is_some() || (is_seen && case.about.by_hand.is_some());
        assert_eq!(
            is_written,
            is_elsewhere || is_seen,
            "{}: the case has a desired.yaml, but no test checks the \
            deviation",
            case.name
        );
    }
}

#[test]
fn every_field_of_a_case_is_explained() {
    let explained = std::fs::read_to_string(case::golden().join("README.md")).expect("the cases have a README");
    let fields = explained
        .lines()
        .skip_while(|line| !line.starts_with("| field of"))
        .filter_map(|line| line.split(" | ").next());
    let fields: BTreeSet<&str> = fields.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    for folder in std::fs::read_dir(case::golden().join("cases")).expect("the cases are there") {
        let file = folder.expect("the cases are listed").path().join("case.yaml");
        let about: Value = serde_saphyr::from_str(&std::fs::read_to_string(&file).expect("it is there")).expect("YAML");
        for field in about.as_object().into_iter().flatten().map(|(field, _)| field) {
            assert!(
                fields.contains(field.as_str()),
                "{file}: {field} has no row in golden/README.md",
                file = file.display()
            );
        }
    }
}

fn difference(wanted: &Value, ours: &Value) -> Option<String> {
    let text = |value: &Value| serde_json::to_string_pretty(value).expect("JSON prints");
    let (wanted, ours) = (text(wanted), text(ours));
    let diff = TextDiff::from_lines(&wanted, &ours);
    (wanted != ours).then(|| diff.unified_diff().context_radius(4).header("wanted", "ours").to_string())
}

fn offline() -> impl Iterator<Item = Case> {
    case::all()
        .expect("the cases are readable")
        .into_iter()
        .filter(|case| !ONLINE.iter().any(|(name, _)| case.name == *name))
}

/// Returns the result that this operator must produce for a case. Returns `None` if the API server rejects the case's
/// object before an operator sees the object.
fn played(case: &Case) -> Option<Value> {
    let wanted = case.wanted().unwrap_or_else(|error| panic!("{}: {error:#}", case.name));
    (wanted.get("rejected").is_none()).then_some(wanted)
}

fn run(case: &Case, wanted: &Value, policies: &[Arc<Policy>]) -> Ended {
    let renderers = policies::renderers(policies, case).unwrap_or_else(|error| panic!("{}: {error:#}", case.name));
    play::play(case, wanted, renderers).unwrap_or_else(|error| panic!("{}: {error:#}", case.name))
}

fn recorded(policies: anyhow::Result<Vec<Arc<Policy>>>) -> (Vec<Arc<Policy>>, Answers) {
    policies.and_then(recorder::recording).expect("the policies load and describe themselves")
}

#[test]
fn every_recorded_case_ends_as_recorded_or_as_desired() {
    let native = policies::native().expect("the policies describe themselves");
    let (mut compared, mut differing) = (0, Vec::new());
    for case in offline() {
        let Some(wanted) = played(&case) else { continue };
        let Ended { outcome: mut ours, conditions, .. } = run(&case, &wanted, &native);
        play::without_additions(&mut ours, &wanted);
        compared += 1;
        for (of, status) in &case.about.conditions {
            assert_eq!(conditions.get(of), Some(status), "{}: condition {of} in {conditions:?}", case.name);
        }
        if let Some(diff) = difference(&wanted, &ours) {
            let desired = case.about.desired.as_deref().unwrap_or("as recorded");
            differing.push(format!("=== {} ({desired})\n{diff}", case.name));
        }
    }
    assert!(differing.is_empty(), "{} of {compared} cases differ\n{}", differing.len(), differing.join("\n"));
    assert!(compared > 120, "only {compared} cases were compared");
}

#[test]
fn native_and_wasm_policies_give_the_same_bytes() {
    let (native, natively) = recorded(policies::native());
    let (wasm, sandboxed) = recorded(policies::wasm());
    for case in offline() {
        let Some(wanted) = played(&case) else { continue };
        run(&case, &wanted, &native);
        run(&case, &wanted, &wasm);
        let (natively, sandboxed) = (natively.take(), sandboxed.take());
        assert!(!natively.is_empty() && natively.len() == sandboxed.len(), "{}: questions", case.name);
        for (native, wasm) in natively.iter().zip(&sandboxed) {
            assert_eq!(native, wasm, "{}", case.name);
        }
    }
}

/// Fails if a case needs a tenth more fuel than recorded.
///
/// A policy uses equal fuel on every machine, so only a change of the policies can need more.
#[test]
fn no_case_takes_a_tenth_more_fuel_than_accepted() {
    let path = case::golden().join("fuel.json");
    let wasm = policies::wasm().expect("the components load");
    let mut now: BTreeMap<String, u64> = BTreeMap::new();
    for case in offline() {
        let Some(wanted) = played(&case) else { continue };
        now.insert(case.name.clone(), run(&case, &wanted, &wasm).fuel);
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let text = serde_json::to_string_pretty(&now).expect("JSON prints") + "\n";
        std::fs::write(&path, text).expect("fuel.json can be written");
        return;
    }
    let accepted: BTreeMap<String, u64> =
        serde_json::from_str(&std::fs::read_to_string(&path).expect("fuel.json is there")).expect("fuel.json parses");
    let risen: Vec<String> = now
        .iter()
        .filter(|(name, fuel)| accepted.get(*name).is_none_or(|accepted| **fuel * 10 > accepted * 11))
        .map(|(name, fuel)| format!("{name}: {fuel}, accepted {:?}", accepted.get(name)))
        .collect();
    assert!(
        risen.is_empty(),
        "if the change is worth the fuel, accept the fuel with UPDATE_GOLDEN=1:\n{}",
        risen.join("\n")
    );
}
