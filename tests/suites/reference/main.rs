//! Checks that generated pages are up to date, that links have targets, and that texts are in plain language.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod circles;
mod conditions;
mod conformance;
mod contract;
mod executables;
mod fields;
mod flags;
mod links;
mod man;
mod mapped;
mod output;
mod page;
mod plain_words;
mod rust;
mod settings;
mod sources;
mod values;
mod variables;

use std::{fs, path::Path};

use kaos_tests::case;
use page::{ROOT, stands};

#[test]
fn the_contract_page_matches_the_contract() {
    let contract = fs::read_to_string(Path::new(ROOT).join("wit/policy.wit")).unwrap();
    let made = contract::page("policy.wit", &contract).unwrap();
    assert!(!made.contains(contract::NO_NAME), "a type of the contract has no name on the page");
    stands("contract.md", &made);
}

#[test]
fn the_fields_page_matches_the_definitions() {
    stands("fields.md", &fields::page().unwrap());
}

#[test]
fn the_settings_page_matches_the_default_policies() {
    stands("settings.md", &settings::page().unwrap());
}

#[test]
fn the_flags_page_matches_the_command_line() {
    stands("flags.md", &flags::page());
}

#[test]
fn the_schemas_of_answers_for_programs_are_published() {
    output::check();
}

#[test]
fn every_verb_has_a_man_page() {
    man::check();
}

#[test]
fn the_reference_lists_every_variable_that_the_binary_reads() {
    for (file, text) in sources::of(&["host/kube-io/src", "host/operator/src", "host/policy/src"]) {
        for (_, rest) in text.match_indices("env::var").map(|(at, _)| text.split_at(at)) {
            let Some(name) = rest.split_once("(\"").and_then(|(call, rest)| (call.len() < 16).then_some(rest)) else {
                continue;
            };
            let name = name.split('"').next().unwrap_or_default();
            assert!(flags::OTHERS.iter().any(|(known, _)| *known == name), "{file} reads {name}");
        }
    }
}

#[test]
fn the_reference_lists_every_reason_of_conditions_and_events() {
    conditions::check();
}

#[test]
fn chart_values_accept_every_field_of_policy_yaml() {
    values::check();
}

#[test]
fn every_variable_of_a_pod_is_in_the_reference_and_in_a_recorded_case() {
    variables::check();
}

#[test]
fn every_row_of_the_checklist_has_a_test_and_the_page_names_it() {
    stands("conformance.md", &conformance::page());
}

#[test]
fn every_line_of_the_threat_model_names_an_existing_test() {
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

#[test]
fn the_upgrade_guide_has_the_number_of_real_takeovers() {
    let page = fs::read_to_string(Path::new(ROOT).join("docs/guide/upgrade-from-kaos.md")).unwrap();
    let words: Vec<&str> = page.split_whitespace().collect();
    let recorded = case::all().unwrap().iter().filter(|case| case.about.by_hand.is_none()).count();
    let said =
        format!("{taken_over} of the {recorded} recorded outcomes", taken_over = case::left_by_go().unwrap().len());
    assert!(words.join(" ").contains(&said), "the page does not say {said}");
}

#[test]
fn every_file_of_tests_is_part_of_an_executable() {
    executables::check();
}

#[test]
fn every_link_between_pages_has_a_target() {
    assert_eq!(links::broken(), Vec::<String>::new());
}

#[test]
fn no_module_cycle_exists_within_a_crate() {
    assert_eq!(circles::all(), Vec::<String>::new());
}

#[test]
fn pages_and_comments_use_plain_words() {
    plain_words::check();
}
