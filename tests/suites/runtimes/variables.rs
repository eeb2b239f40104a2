//! Checks that `tests/runtimes/reads.json` lists the variables that the installed packages read. The test of the page
//! `docs/reference/variables.md` reads only this file, so it needs no packages.

use std::fs;
use std::path::Path;

use crate::images::{self, Image};

/// Returns the names in the first column of the reference page.
fn names() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/variables.md");
    let page = fs::read_to_string(page).unwrap();
    let name = |line: &str| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned());
    page.lines().filter_map(name).collect()
}

#[test]
fn the_accepted_variables_are_those_that_the_packages_read() {
    let mut words = vec!["python".to_owned(), images::of_tests().join("scan.py").display().to_string()];
    words.extend(["kaos", "litellm"].map(|environment| images::packages(environment).unwrap().display().to_string()));
    words.extend(names());
    let output = Image::named("kaos-agent").unwrap().program(&words).unwrap().output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = String::from_utf8(output.stdout).unwrap();
    let file = images::of_tests().join("reads.json");
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        fs::write(&file, &read).unwrap();
    }
    let command = "UPDATE_REFERENCE=1 tests/run runtimes";
    assert!(fs::read_to_string(&file).unwrap_or_default() == read, "{} is stale: run {command}", file.display());
    println!("  the packages read {} of the page's variables or more", read.matches("\"used\"").count());
}
