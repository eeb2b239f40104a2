//! Generates `docs/reference/conformance.md`. The page lists each row of the reconcile loop's checklist, with the tests
//! for this row.
//!
//! The rows come from `tests/suites/reconcile/checklist.md`. The name of each test in the suite `reconcile` begins with
//! the row that the test checks. The test's scenario shows whether the test also runs on real Kubernetes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::page::{ROOT, head, table};
use crate::sources;

/// Suites that run only on real Kubernetes.
const REAL: [&str; 2] = ["tests/suites/e2e/", "tests/suites/chaos/"];

/// A test of the suite `reconcile`.
struct Test {
    file: String,
    name: String,
    /// Why the test runs only on the embedded cluster. `None` if the test also runs on real Kubernetes.
    embedded: Option<String>,
}

/// Generates the page. Fails if a row has no test, or if a row names a test that does not exist.
pub(crate) fn page() -> String {
    let tests = tests();
    let checklist = fs::read_to_string(Path::new(ROOT).join("tests/suites/reconcile/checklist.md")).unwrap();
    let mut page = head("Conformance", "tests/suites/reconcile/checklist.md and the names of the tests");
    page += "The rules of the reconcile loop, and the tests that prove them. The suite `reconcile` runs on the embedded \
             cluster (`tests/run reconcile`) and on a real control plane (`tests/run reconcile_real`). `tests/run e2e` and \
             `tests/run chaos` run only on a real control plane. If a row has no test on a real control plane, its last \
             column gives the reason. In general, only the embedded cluster injects faults, simulates time and \
             records every request.\n\n";
    let (mut body, mut rows, mut shown, mut all) = (String::new(), Vec::new(), 0, 0);
    for line in checklist.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            close(&mut body, &mut rows);
            let _ = writeln!(body, "## {title}\n");
        } else if let Some((row, is_real)) = row(line, &tests) {
            (all, shown) = (all + 1, shown + usize::from(is_real));
            rows.push(row);
        }
    }
    close(&mut body, &mut rows);
    assert!(all > 60, "the checklist has {all} rows");
    let _ = writeln!(page, "{all} rows, {shown} of them shown on real Kubernetes.\n");
    (page + &body).trim_end().to_owned() + "\n"
}

fn close(body: &mut String, rows: &mut Vec<Vec<String>>) {
    if !rows.is_empty() {
        *body += &table(&["Row", "Rule", "Embedded cluster", "Real Kubernetes"], rows);
        rows.clear();
    }
}

/// Converts a line of the checklist to a row of the page. Also returns whether a test checks this row on real
/// Kubernetes.
fn row(line: &str, tests: &BTreeMap<String, Vec<Test>>) -> Option<(Vec<String>, bool)> {
    let cells: Vec<&str> = line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
    let [id, rule, also, remark] = cells[..] else { return None };
    if !id.starts_with(|c: char| c.is_ascii_uppercase()) || id == "Row" {
        return None;
    }
    let (mut embedded, mut real, mut reasons) = (Vec::new(), Vec::new(), Vec::new());
    for test in tests.get(&id.to_lowercase()).into_iter().flatten() {
        let link = link(&format!("tests/suites/reconcile/{}", test.file), &test.name);
        embedded.push(link.clone());
        match &test.embedded {
            None => real.push(link),
            Some(why) if !reasons.contains(why) => reasons.push(why.clone()),
            Some(_) => {}
        }
    }
    if !real.is_empty() && real.len() == embedded.len() {
        real = vec!["the same".to_owned()];
    }
    for named in also.split('`').map(str::trim).filter(|named| !["", ","].contains(named)) {
        let (file, name) = named.split_once(' ').unwrap_or_else(|| panic!("{id}: `{named}` is no file and test"));
        let text =
            fs::read_to_string(Path::new(ROOT).join(file)).unwrap_or_else(|error| panic!("{id}: {file}: {error}"));
        assert!(text.contains(&format!("fn {name}(")), "{id}: {file} has no test {name}");
        let is_real = REAL.iter().any(|suite| file.starts_with(suite));
        if is_real { &mut real } else { &mut embedded }.push(link(file, name));
    }
    let is_real = !real.is_empty();
    assert!(is_real || !reasons.is_empty(), "row {id} of the checklist has no test");
    if !is_real {
        let why = if remark.is_empty() { reasons.join("; ") } else { remark.to_owned() };
        real.push(format!("embedded only: {why}"));
    }
    Some((vec![id.to_owned(), rule.to_owned(), embedded.join("<br>"), real.join("<br>")], is_real))
}

fn link(file: &str, test: &str) -> String {
    format!("[{}](../../{file})", test.replace('_', " "))
}

/// Returns the tests of each row.
fn tests() -> BTreeMap<String, Vec<Test>> {
    let folder = Path::new(ROOT).join("tests/suites/reconcile");
    let mut tests: BTreeMap<String, Vec<Test>> = BTreeMap::new();
    let mut files = sources::below(&folder);
    files.sort();
    for path in files {
        let file = path.strip_prefix(&folder).unwrap().display().to_string();
        let text = fs::read_to_string(&path).unwrap();
        let functions: BTreeMap<&str, &str> = text.split("\nfn ").skip(1).filter_map(|it| it.split_once('(')).collect();
        for part in text.split("#[test]\nfn ").skip(1) {
            let Some((name, _)) = part.split_once('(') else { continue };
            let row = name.split('_').next().unwrap_or_default().to_owned();
            let embedded = embedded(functions[name], &functions);
            tests.entry(row).or_default().push(Test { file: file.clone(), name: name.to_owned(), embedded });
        }
    }
    tests
}

/// Returns why a test needs the embedded cluster, or `None` if the test also runs on a real cluster. The test itself
/// contains the reason as text, or it calls a function of the same file that contains the reason.
fn embedded(body: &str, functions: &BTreeMap<&str, &str>) -> Option<String> {
    let body = &body[..body.find("\n}\n").unwrap_or(body.len())];
    let why = |text: &str| {
        let (_, rest) = text.split_once("Scenario::embedded(\"")?;
        Some(rest.split('"').next()?.to_owned())
    };
    let called = || {
        let called = functions.iter().filter(|(name, _)| body.contains(&format!("{name}(")));
        called
            .filter(|(_, text)| text.contains("play("))
            .find_map(|(_, text)| why(&text[..text.find("\n}\n").unwrap_or(text.len())]))
    };
    why(body).or_else(called)
}
