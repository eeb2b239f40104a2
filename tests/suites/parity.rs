//! The default policies do what KAOS's Go operator did, or what a case says instead.
//!
//! Every case is played twice, with the policies compiled into this test and as the components that the
//! binary carries. Both have to give the same bytes. `UPDATE_GOLDEN=1` writes `desired.yaml` of the cases that
//! want a deviation, and `golden/fuel.json`; read the difference before you commit it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::Arc;

use kaos_policy::policy::Policy;
use kaos_tests::case::{self, Case};
use kaos_tests::play::{self, Ended};
use kaos_tests::policies;
use serde_json::Value;
use similar::TextDiff;

/// Cases that are about the API server or about writing, which nothing offline shows.
const ONLINE: [(&str, &str); 1] =
    [("agent-adopt-foreign-same-labels", "whether to take over a stranger's object is decided while applying")];

fn updating() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some()
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

/// Everything but what the API server refuses before an operator sees it.
fn played(case: &Case) -> Option<Value> {
    let wanted = case.wanted().unwrap_or_else(|error| panic!("{}: {error:#}", case.name));
    (wanted.get("rejected").is_none()).then_some(wanted)
}

fn run(case: &Case, wanted: &Value, policies: &[Arc<Policy>]) -> Ended {
    let renderers = policies::renderers(policies, case).unwrap_or_else(|error| panic!("{}: {error:#}", case.name));
    play::play(case, wanted, renderers).unwrap_or_else(|error| panic!("{}: {error:#}", case.name))
}

#[test]
fn every_recorded_case_ends_as_recorded_or_as_desired() {
    let native = policies::native().expect("the policies describe themselves");
    let (mut compared, mut differing) = (0, Vec::new());
    for case in offline() {
        let Some(mut wanted) = played(&case) else { continue };
        let mut ours = run(&case, &wanted, &native).outcome;
        if updating() && case.about.desired.is_some() {
            wanted = case.recorded.clone();
            wanted.as_object_mut().expect("an object").remove("rejected");
        }
        play::without_additions(&mut ours, &wanted);
        if updating() && case.about.desired.is_some() {
            case.write_deviation(&ours).expect("desired.yaml can be written");
            continue;
        }
        compared += 1;
        if let Some(diff) = difference(&wanted, &ours) {
            let desired = case.about.desired.as_deref().unwrap_or("as recorded");
            differing.push(format!("=== {} ({desired})\n{diff}", case.name));
        }
    }
    assert!(differing.is_empty(), "{} of {compared} cases differ\n{}", differing.len(), differing.join("\n"));
    assert!(updating() || compared > 120, "only {compared} cases were compared");
}

#[test]
fn native_and_wasm_policies_give_the_same_bytes() {
    let native = policies::native().expect("the policies describe themselves");
    let wasm = policies::wasm().expect("the components load");
    for case in offline() {
        let Some(wanted) = played(&case) else { continue };
        let (natively, sandboxed) = (run(&case, &wanted, &native).outcome, run(&case, &wanted, &wasm).outcome);
        assert_eq!(natively.to_string(), sandboxed.to_string(), "{}", case.name);
    }
}

/// Fuel is exact, so a rise is a change of the policies and not of the weather.
#[test]
fn no_case_takes_a_tenth_more_fuel_than_accepted() {
    let path = case::golden().join("fuel.json");
    let wasm = policies::wasm().expect("the components load");
    let mut now: BTreeMap<String, u64> = BTreeMap::new();
    for case in offline() {
        let Some(wanted) = played(&case) else { continue };
        now.insert(case.name.clone(), run(&case, &wanted, &wasm).fuel);
    }
    if updating() {
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
    assert!(risen.is_empty(), "accept with UPDATE_GOLDEN=1 if it is worth it:\n{}", risen.join("\n"));
}
