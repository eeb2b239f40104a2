//! Writes a record of each object in the recorded cases: the object's status, and the verdict that other tools must
//! give on the object. `tests/gitops` checks these verdicts with the tools' own libraries.
//!
//! The verdict follows from the object's phase in the recording of the Go operator. The constant `DIFFERENT` lists the
//! objects for which this operator reports another state.

use kaos_tests::case;
use kaos_tests::play;
use kaos_tests::policies;
use kaos_tests::verdicts::{Verdict, compare};
use serde_json::{Map, Value};

/// The objects whose verdict does not follow from the recorded phase. Each entry has the object, the verdict and the
/// reason.
const DIFFERENT: [(&str, Verdict, &str); 0] = [];

#[test]
fn the_status_of_every_recorded_case_equals_the_record_for_other_tools() {
    let native = policies::native().unwrap();
    let (mut records, mut counts) = (Map::new(), [0; 3]);
    for case in case::all().unwrap() {
        let wanted = case.wanted().unwrap();
        if wanted.get("rejected").is_some() {
            continue;
        }
        let renderers = policies::renderers(&native, &case).unwrap();
        let ended = play::play(&case, &wanted, renderers).unwrap_or_else(|error| panic!("{}: {error:#}", case.name));
        for (at, object) in case.about.primary.iter().zip(&ended.objects) {
            let name = format!("{} {at}", case.name);
            let phase = wanted["statuses"].get(at).unwrap_or(&wanted["status"])["phase"].as_str().unwrap_or_default();
            let verdict = stated(&name, phase);
            counts[verdict as usize] += 1;
            records.insert(name, verdict.record(object));
        }
    }
    assert!(counts.iter().all(|count| *count > 4), "a verdict has too few cases: {counts:?}");
    compare("cases", &Value::Object(records));
}

fn stated(name: &str, phase: &str) -> Verdict {
    if let Some((_, verdict, _)) = DIFFERENT.iter().find(|(of, ..)| *of == name) {
        return *verdict;
    }
    match phase {
        "Ready" => Verdict::Done,
        "Pending" | "Waiting" => Verdict::Waits,
        "Failed" => Verdict::Fails,
        other => panic!("{name}: the phase {other} is unknown"),
    }
}
