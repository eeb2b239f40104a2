//! Writes the JSON Schemas for the machine-readable output of commands into `docs/reference/output`.

use std::{fs, path::Path};

use kaos_operator::cli::output_schemas;

use crate::page::{ROOT, stands};

/// Checks that `docs/reference/output` contains each schema, and no other file.
pub(crate) fn check() {
    let folder = Path::new(ROOT).join("docs/reference/output");
    fs::create_dir_all(&folder).unwrap();
    let mut names = Vec::new();
    for (verb, schema) in output_schemas() {
        let name = format!("{verb}.schema.json");
        stands(&format!("output/{name}"), &(serde_json::to_string_pretty(&schema).unwrap() + "\n"));
        names.push(name);
    }
    names.sort();
    let found = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut found: Vec<String> = found.collect();
    found.sort();
    assert_eq!(found, names);
}
