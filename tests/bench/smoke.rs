//! Runs the bench with a small load. The test runs every chapter of the bench, and checks those results that are the
//! same for a load of any size.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::process::Command;

use kaos_tests::control_plane::programs::Programs;
use serde_json::Value;

/// The number of objects in the load: twelve Agents, four ModelAPIs and four MCPServers.
const OBJECTS: f64 = 20.0;

/// Returns the command that starts the operator of this build with the arguments of the chart.
fn operator() -> String {
    let program = Programs::operator().unwrap().canonicalize().unwrap();
    let pages = "--metrics-bind-address=$METRICS --health-probe-bind-address=$HEALTH --debug-bind-address=0";
    format!("{} $ARGUMENTS {pages}", program.display())
}

/// Runs the bench with these additional flags. Returns its output and its JSON file.
fn bench(name: &str, more: &[&str]) -> (String, Value) {
    let folder = std::env::temp_dir().join(format!("kaos-bench-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let json = folder.join("bench.json");
    let ran = Command::new(env!("CARGO_BIN_EXE_kaos-bench"))
        .args(["--agents=12", "--modelapis=4", "--mcpservers=4", "--silence=3", "--still=2", "--assert"])
        .args(["--operator", &operator()])
        .args(more)
        .arg("--json")
        .arg(&json)
        .env_remove("UPDATE_PERFORMANCE")
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}\n{err}");
    let written = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    fs::remove_dir_all(folder).unwrap();
    (out.into_owned(), written)
}

/// Returns the cells of a row in the printed table.
fn row<'o>(out: &'o str, text: &str) -> Vec<&'o str> {
    let row = out.lines().find(|line| line.starts_with(&format!("| {text} |")));
    let row = row.unwrap_or_else(|| panic!("no row {text} in\n{out}"));
    row.trim_matches('|').split('|').map(str::trim).collect()
}

#[test]
fn the_bench_measures_start_steady_state_and_restart() {
    let (out, json) = bench("smoke", &[]);
    assert_eq!(row(&out, "Load: writes").len(), 3, "{out}");
    let median = &json["operators"][0]["median"];
    // The operator writes every child and every status at least once. With a smaller number, the bench would have
    // missed writes.
    assert!(median["load.writes"].as_f64().unwrap() >= 60.0, "{median:#}");
    assert!(median["load.passes"].as_f64().unwrap() >= 20.0, "{median:#}");
    assert!(median["peaks"].as_f64().unwrap() >= median["peak"].as_f64().unwrap(), "{median:#}");
}

#[test]
fn memory_stores_are_a_part_of_the_load() {
    let (out, json) = bench("stores", &["--memorystores=3"]);
    assert!(out.contains("4 MCPServers, 3 MemoryStores, 12 Agents"), "{out}");
    // The bench has checked that each store has a Deployment. Each store also has a Service and a volume claim.
    let writes = json["operators"][0]["median"]["load.writes"].as_f64().unwrap();
    assert!(writes >= 3.0 * OBJECTS + 12.0, "{writes}");
}

#[test]
fn an_operator_compared_with_itself_makes_the_same_calls() {
    let (out, json) = bench("pair", &["--versus", &operator(), "--rounds=2"]);
    assert!(out.contains("medians of 2 rounds") && out.contains("| | aim | one | other | one / other |"), "{out}");
    let operators = json["operators"].as_array().unwrap();
    assert_eq!(operators.len(), 2, "{json:#}");
    for operator in operators {
        assert_eq!(operator["rounds"].as_array().unwrap().len(), 2, "{operator:#}");
    }
    // The operator writes the children equally often on any machine. The number of status writes varies, because an
    // Agent's pass can run before or after the pass of its ModelAPI.
    let median = |number: usize, key: &str| operators[number]["median"][key].as_f64().unwrap();
    let children = |number: usize| median(number, "load.writes") - median(number, "load.status");
    assert!(children(0) > 0.0 && (children(0) / children(1) - 1.0).abs() <= 0.1, "{json:#}");
    for number in [0, 1] {
        assert!((OBJECTS..=2.0 * OBJECTS).contains(&median(number, "load.status")), "{json:#}");
    }
    let text = "Mode changed: writes of Deployments";
    let [one, other] = [0, 1].map(|number| median(number, "mode.deployments"));
    assert!(one > 0.0 && (one / other - 1.0).abs() <= 0.1, "{text}: {one} and {other}");
    let cells = row(&out, text);
    assert_eq!((cells.len(), cells[4]), (5, &*format!("{:.2}", one / other)), "{cells:?}");
}
