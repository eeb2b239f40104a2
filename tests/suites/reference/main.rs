//! Pages that are made from something else are what they would be if they were made now.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod contract;

use std::{fs, path::Path};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

#[test]
fn the_reference_of_the_contract_is_what_the_contract_says() {
    let contract = fs::read_to_string(Path::new(ROOT).join("wit/policy.wit")).unwrap();
    let made = contract::page("policy.wit", &contract).unwrap();
    let page = Path::new(ROOT).join("docs/reference/contract.md");
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        fs::write(&page, &made).unwrap();
    }
    assert!(!made.contains('?'), "a type of the contract has no name on the page");
    let kept = fs::read_to_string(&page).unwrap_or_default();
    assert!(kept == made, "docs/reference/contract.md is stale: make it anew with UPDATE_REFERENCE=1");
}

#[test]
fn every_line_of_the_threat_model_names_a_test_that_is_there() {
    let page = fs::read_to_string(Path::new(ROOT).join("docs/reference/threat-model.md")).unwrap();
    let lines: Vec<&str> =
        page.lines().filter(|line| line.starts_with("| ") && !line.ends_with("proved by |")).collect();
    assert!(lines.len() > 30, "{}", lines.len());
    for line in lines {
        let cell = line.trim_end_matches('|').rsplit('|').next().unwrap();
        let words: Vec<&str> = cell.split('`').map(str::trim).filter(|word| !word.is_empty()).collect();
        let [file, test] = words[..] else { panic!("no file and test in: {line}") };
        let text = fs::read_to_string(Path::new(ROOT).join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(text.contains(&format!("fn {test}(")), "{file} has no test {test}");
    }
}
