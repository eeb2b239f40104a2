//! Compares the costs of the same policies in all languages. Also checks that repeated passes over the same sample use
//! equal fuel.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use kaos_operator::conform::Passes;
use kaos_operator::policies::sample_cluster;
use kaos_operator::schema::KnownCrds;
use kaos_policy::gate::CodeForm;
use kaos_policy::policy::Policy;
use kaos_tests::control_plane::programs::Programs;
use kaos_tests::{mcpservers, page, usage, websites};
use serde_json::Value;

use super::built::{self, Built};

/// The number of passes over each sample in CI.
///
/// `tests/run costs` makes 10,000 passes, and also checks that they use equal fuel.
const PASSES: u32 = 200;

/// Checks that all passes over one sample take the same fuel.
fn one_fuel_count(language: &str, policy: &Arc<Policy>) {
    let crds = KnownCrds::embedded().unwrap();
    let ready = Passes::new(policy, &[], &sample_cluster(), &crds, &[]).unwrap();
    assert!(ready.count() > 0, "{language}: no sample");
    for number in 0..ready.count() {
        let counts: BTreeSet<u64> = (0..PASSES).map(|_| ready.run(number).unwrap()).collect();
        assert_eq!(counts.len(), 1, "{language}: sample {number}: {counts:?}");
    }
}

#[test]
fn passes_of_the_template_in_each_language_take_the_same_fuel() {
    for Built { language, form, bytes } in built::templates() {
        one_fuel_count(language, &websites::load(form, bytes));
    }
}

#[test]
fn passes_of_the_policy_for_mcp_servers_in_each_language_take_the_same_fuel() {
    for Built { language, form, bytes } in built::mcpservers("fuel") {
        one_fuel_count(language, &mcpservers::load(form, bytes));
    }
}

/// The figures of one policy.
struct Figures {
    language: &'static str,
    bench: Value,
    /// The peak memory of the compile child in bytes. `None` for a script, which needs no compilation.
    compile_memory: Option<u64>,
}

/// Runs `policy bench` with this number of passes over each sample, and watches its compile child.
fn measured(policy: &Built, folder: &Path, passes: &str) -> Figures {
    let file = folder.join(if policy.form == CodeForm::Script { "policy.js" } else { "policy.wasm" });
    fs::write(&file, &policy.bytes).unwrap();
    let mut bench = Command::new(Programs::operator().unwrap())
        .args(["policy", "bench", "--passes", passes, "-o", "json"])
        .arg(&file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let process = bench.id();
    let watched = thread::spawn(move || {
        let mut most = None;
        while usage::resident(process).is_some() {
            most = most.max(usage::children(process).into_iter().filter_map(usage::peak).max());
            thread::sleep(Duration::from_millis(2));
        }
        most
    });
    let mut text = String::new();
    bench.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(bench.wait().unwrap().success(), "{}: {text}", policy.language);
    fs::remove_file(&file).unwrap();
    Figures {
        language: policy.language,
        bench: serde_json::from_str(&text).unwrap(),
        compile_memory: watched.join().unwrap(),
    }
}

fn megabytes(bytes: u64) -> String {
    let tenths = (bytes * 10).div_ceil(1 << 20);
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

/// Formats one figure.
type Shown<'a> = &'a dyn Fn(&Figures) -> String;

/// Builds the rows of the table: a line for each figure, and a column for each language.
fn table(all: &[Figures]) -> String {
    let number = |figures: &Figures, pointer: &str| figures.bench.pointer(pointer).and_then(Value::as_f64);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the figures are small and positive")]
    let bytes = |figures: &Figures, pointer: &str| megabytes(number(figures, pointer).unwrap_or_default() as u64);
    let size = |figures: &Figures| format!("{:.0} KB", number(figures, "/sizeBytes").unwrap_or_default() / 1e3);
    let compile = |figures: &Figures| match number(figures, "/compileMilliseconds") {
        Some(time) if figures.compile_memory.is_some() => format!("{:.1} s", time / 1e3),
        _ => "none".to_owned(),
    };
    let fuel = |figures: &Figures| format!("{:.2} million", number(figures, "/fuel/p50").unwrap_or_default() / 1e6);
    let time =
        |figures: &Figures| format!("{:.2} ms", number(figures, "/passNanoseconds/p50").unwrap_or_default() / 1e6);
    let counts = |figures: &Figures| number(figures, "/fuelCounts").unwrap_or_default().to_string();
    let code = |figures: &Figures| match number(figures, "/scriptEngineBytes") {
        Some(engine) if engine > 0.0 => bytes(figures, "/scriptEngineBytes"),
        _ => bytes(figures, "/compiledBytes"),
    };
    let rows: [(&str, Shown<'_>); 9] = [
        ("size of the component or script", &size),
        ("compiled code", &code),
        ("time of the compilation", &compile),
        ("peak memory of the compilation", &|it| it.compile_memory.map_or("none".to_owned(), megabytes)),
        ("memory of a pass", &|figures| bytes(figures, "/memoryBytes/p50")),
        ("fuel of a pass", &fuel),
        ("different fuel counts of a sample", &counts),
        ("time of a pass", &time),
        ("time of a pass, 99th percentile", &|figures| {
            format!("{:.2} ms", number(figures, "/passNanoseconds/p99").unwrap_or_default() / 1e6)
        }),
    ];
    let mut text = String::from("| |");
    for figures in all {
        let _ = write!(text, " {} |", figures.language);
    }
    let _ = writeln!(text, "\n|---|{}", "---:|".repeat(all.len()));
    for (what, shown) in rows {
        let _ = write!(text, "| {what} |");
        for figures in all {
            let _ = write!(text, " {} |", shown(figures));
        }
        text.push('\n');
    }
    text
}

/// Prints the table that the performance page contains. `cargo test` skips this function, and `tests/run costs` runs
/// it.
#[test]
#[ignore = "takes minutes; `tests/run costs` runs it"]
fn the_table_of_all_languages_for_the_performance_page() {
    let passes = std::env::var("KAOS_PASSES").unwrap_or_else(|_| "10000".to_owned());
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("costs");
    fs::create_dir_all(&folder).unwrap();
    let of = |policies: [Built; 4]| policies.map(|policy| measured(&policy, &folder, &passes));
    let templates = of(built::templates());
    // With the grants in this file, the policy can read the registry that its sample needs.
    fs::write(folder.join("policy.yaml"), include_str!("../../../guest-policies/mcpserver/policy.yaml")).unwrap();
    let servers = of(built::mcpservers("costs"));
    fs::remove_dir_all(&folder).unwrap();
    for figures in templates.iter().chain(&servers) {
        assert_eq!(figures.bench["fuelCounts"], 1, "{}: {}", figures.language, figures.bench);
    }
    let text = format!(
        "The template of `policy new`, {passes} passes over its sample:\n\n{}\nThe policy for MCPServers, {passes} \
         passes over each of its two samples:\n\n{}",
        table(&templates),
        table(&servers)
    );
    page::publish("languages", &text).unwrap();
}
