//! The bench with a small load: the whole story is told, and what holds for every load holds.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::process::Command;

use kaos_tests::control_plane::programs::Programs;

#[test]
fn the_bench_tells_of_an_operator_from_start_to_restart_and_of_silence_in_between() {
    let operator = Programs::operator().unwrap();
    let command = format!(
        "{} run --metrics-bind-address=$METRICS --health-probe-bind-address=$HEALTH",
        operator.canonicalize().unwrap().display()
    );
    let folder = std::env::temp_dir().join(format!("kaos-bench-smoke-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let json = folder.join("bench.json");
    let ran = Command::new(env!("CARGO_BIN_EXE_kaos-bench"))
        .args(["--agents=12", "--modelapis=4", "--mcpservers=4", "--silence=3", "--still=2", "--assert"])
        .args(["--operator", &command])
        .arg("--json")
        .arg(&json)
        .env_remove("UPDATE_PERFORMANCE")
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}\n{err}");
    assert!(out.contains("| Load: writes | "), "{out}");
    let json: serde_json::Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let median = &json["operators"][0]["median"];
    // One write for each child and each status at least: the instrument hears what is written.
    assert!(median["load.writes"].as_f64().unwrap() >= 60.0, "{median:#}");
    assert!(median["load.passes"].as_f64().unwrap() >= 20.0, "{median:#}");
    assert!(median["peaks"].as_f64().unwrap() >= median["peak"].as_f64().unwrap(), "{median:#}");
    fs::remove_dir_all(folder).unwrap();
}
