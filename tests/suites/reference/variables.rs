//! Checks `docs/reference/variables.md`, and generates its table of origins and images. Authors write the page's other
//! tables by hand. These other tables together must have exactly one row for each variable that the default policies
//! set.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use kaos_agent::KAOS_IMAGE;
use kaos_tests::case::{self, Case};
use serde_json::Value;

use crate::mapped::{self, Row, as_told};
use crate::page::{ROOT, code, stands, table};

/// Variables that pods in the recorded cases have only because of the registry of runtimes.
const OF_THE_REGISTRY: [&str; 1] = ["FULL_CONFIG"];
/// The beginning of the generated table, and the text after the table.
const GENERATED: (&str, &str) = ("| Variable | Kind | The value comes from | Read by |", "\n## Read by the images");

/// Fails if a variable has no row, if a row has no variable, or if the generated table is stale.
pub(crate) fn check() {
    let mapped = mapped::all();
    let mut set: BTreeSet<Row> = case::all().unwrap().iter().flat_map(variables).collect();
    set.extend(mapped.keys().cloned());
    mapped::check_sources(&set);
    let page = fs::read_to_string(Path::new(ROOT).join("docs/reference/variables.md")).unwrap();
    let (before, rest) = page.split_once(GENERATED.0).expect("the generated table");
    let (_, of_images) = rest.split_once(GENERATED.1).expect("a chapter about images");
    stands("variables.md", &format!("{before}{}{}{of_images}", generated(&set, &mapped), GENERATED.1));
    let (chapters, _) = before.split_once("\n## Fields, variables and images").expect("a chapter about fields");
    let told = rows(chapters);
    compare_with_images(&told, of_images);
    compare_with_versions(of_images);
    let missing: Vec<_> = set.difference(&told).collect();
    assert!(missing.is_empty(), "docs/reference/variables.md has no row for: {missing:?}");
    let unset: Vec<_> = told.difference(&set).collect();
    assert!(unset.is_empty(), "the page has rows for variables that no policy sets: {unset:?}");
}

/// Returns the table of all variables, with the origins of their values, and with the images that read the variables.
fn generated(set: &BTreeSet<Row>, mapped: &BTreeMap<Row, BTreeSet<String>>) -> String {
    let reads = reads();
    let row = |row: &Row| {
        let places: Vec<&str> = mapped.get(row).into_iter().flatten().map(String::as_str).collect();
        let places = if places.is_empty() { "fixed".to_owned() } else { places.join(", ") };
        let (kind, name) = row;
        vec![code(name), kind.clone(), places, read_by(&reads, kind, name)]
    };
    let rows: Vec<Vec<String>> = set.iter().map(row).collect();
    let heads: Vec<&str> = GENERATED.0.split('|').map(str::trim).filter(|head| !head.is_empty()).collect();
    table(&heads, &rows).trim_end().to_owned() + "\n"
}

/// Returns the images that read a variable.
fn read_by(reads: &Value, kind: &str, name: &str) -> String {
    let image = IMAGES.iter().find(|(known, _)| *known == kind && name != OF_OLLAMA);
    let Some((_, image)) = image else { return "not checked".to_owned() };
    let is_read = |(read, how): (&String, &Value)| how == "used" && mapped::as_told(&read.replace("{}", "x")) == name;
    let newest = if *image == "litellm" { "LiteLLM 1.108" } else { "KAOS 0.8.4" };
    let versions = KAOS_IMAGE.1.iter().find(|(entry, _)| kind == "Agent" && covers(entry, name));
    match versions {
        Some((_, versions)) => told_versions(versions),
        None if reads[*image].as_object().unwrap().iter().any(is_read) => newest.to_owned(),
        None => format!("not by {newest}"),
    }
}

fn reads() -> Value {
    let reads = fs::read_to_string(Path::new(ROOT).join("tests/runtimes/reads.json")).unwrap();
    serde_json::from_str(&reads).unwrap()
}

/// Returns whether an entry of the table [`KAOS_IMAGE`] covers a variable. An entry with `*` at the end covers every
/// name that begins with the text before the `*`.
fn covers(entry: &str, name: &str) -> bool {
    entry.strip_suffix('*').map_or(entry == name, |beginning| name.starts_with(beginning))
}

/// Formats the versions in an entry of the table [`KAOS_IMAGE`] as words.
fn told_versions(versions: &str) -> String {
    match versions.strip_prefix('<') {
        Some(before) => format!("versions before {before}"),
        None if versions == "never" => "no version".to_owned(),
        None => format!("{versions} and newer"),
    }
}

/// The variable that ModelAPIs set for Ollama. `reads.json` cannot contain it, because Ollama has no Python package.
const OF_OLLAMA: &str = "OLLAMA_DEBUG";
/// The kinds, each with the name of its image in `tests/runtimes/reads.json`.
const IMAGES: [(&str, &str); 3] = [("Agent", "agent"), ("MemoryStore", "memory"), ("ModelAPI", "litellm")];

/// Checks the two tables of the chapter about images. The first table must have the variables that a policy sets in a
/// pod, but that the pod's image does not use. The second table must have the variables that an image reads, but that
/// no policy sets. The step `runtimes` of `tests/run` compares `reads.json` with the packages.
fn compare_with_images(told: &BTreeSet<(String, String)>, chapter: &str) {
    let reads = reads();
    let (mut read, mut used) = (BTreeSet::new(), BTreeSet::new());
    for (kind, image) in IMAGES {
        for (name, how) in reads[image].as_object().unwrap() {
            let row = (kind.to_owned(), as_told(&name.replace("{}", "x")));
            if how == "used" {
                used.insert(row.clone());
            }
            read.insert(row);
        }
    }
    // The chapter has two tables. The second column of each table contains the kind.
    let tables: Vec<BTreeSet<(String, String)>> = chapter.split("|---|---|---|").skip(1).map(of_kinds).collect();
    let is_known = |row: &&(String, String)| IMAGES.iter().any(|(kind, _)| *kind == row.0);
    let unused: BTreeSet<_> = told.difference(&used).filter(is_known).cloned().collect();
    assert_eq!(tables[0], unused, "variables that a pod has and its image does not use");
    // Skip LiteLLM in the second table: for its image, `reads.json` contains only variables that the page mentions.
    let unset: BTreeSet<_> = read.difference(told).filter(|(kind, _)| kind != "ModelAPI").cloned().collect();
    assert_eq!(tables[1], unset, "variables that an image reads and no policy sets");
}

/// Checks that the chapter contains the table [`KAOS_IMAGE`], in which the Agents' policy lists the variables that
/// versions of KAOS's image ignore. Also checks that this table agrees with `reads.json`.
fn compare_with_versions(chapter: &str) {
    let (image, known) = KAOS_IMAGE;
    let reads = reads();
    let is_used = |name: &str| reads["agent"][name] == "used";
    assert!(chapter.contains(&format!("`{image}`")), "the image has another name");
    let mut table = "| Variables | Read by |\n|---|---|\n".to_owned();
    for (entry, versions) in known {
        let told = told_versions(versions);
        table += &format!("| `{entry}` | {told} |\n");
        let names = reads["agent"].as_object().unwrap().keys();
        let all: Vec<&String> = names.filter(|name| covers(entry, name)).collect();
        let is_right = if told.ends_with("newer") {
            !all.is_empty() && all.iter().all(|name| is_used(name))
        } else {
            all.iter().all(|name| !is_used(name))
        };
        assert!(is_right, "{entry}: the packages contradict the policy's table about {all:?}");
    }
    assert!(chapter.contains(&table), "docs/reference/variables.md needs this table:\n{table}");
    // Check the variables that a field of an Agent sets, but that the image ignores.
    let of_fields = ["AGENTIC_LOOP_", "MEMORY_", "TASK_", "AUTONOMOUS_"];
    for (kind, name) in of_kinds(chapter.split("|---|---|---|").nth(1).unwrap()) {
        let is_of_field = kind == "Agent" && of_fields.iter().any(|beginning| name.starts_with(beginning));
        // The policy sets `MEMORY_TYPE` for every kind of memory, so no field decides whether the variable exists.
        let is_known = name == "MEMORY_TYPE" || known.iter().any(|(entry, _)| covers(entry, &name));
        assert!(!is_of_field || is_known, "{name} is missing in the policy's table");
    }
}

/// Reads a table with kinds in its second column. Returns each variable with its kind.
fn of_kinds(table: &str) -> BTreeSet<(String, String)> {
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.split(['|', '`']).map(str::trim).filter(|cell| !cell.is_empty());
        let name = cells.next()?.to_owned();
        Some((cells.next()?.to_owned(), name))
    };
    table.lines().filter_map(row).collect()
}

/// Returns the variables of the pods in a case's result, with the kind of their object. Omits variables that the user
/// sets.
fn variables(case: &Case) -> Vec<(String, String)> {
    let mut own = BTreeSet::new();
    case.input.iter().chain(&case.update).for_each(|object| names(object, &mut own));
    let wanted = case.wanted().unwrap();
    let mut variables = Vec::new();
    for child in wanted["children"].as_array().into_iter().flatten() {
        let mut all = BTreeSet::new();
        names(child, &mut all);
        let Some(kind) = child["metadata"]["ownerReferences"][0]["kind"].as_str() else { continue };
        let others = all.difference(&own).filter(|name| !OF_THE_REGISTRY.contains(&name.as_str()));
        variables.extend(others.map(|name| (kind.to_owned(), as_told(name))));
    }
    variables
}

/// Adds the names in every list of variables below `value`.
fn names(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                let variables = value.as_array().filter(|_| field == "env").into_iter().flatten();
                found.extend(variables.filter_map(|variable| Some(variable["name"].as_str()?.to_owned())));
                names(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| names(item, found)),
        _ => {}
    }
}

/// Returns the variables on the page, with the kinds of their chapters.
fn rows(page: &str) -> BTreeSet<(String, String)> {
    let mut kind = "";
    let mut rows = BTreeSet::new();
    for line in page.lines() {
        kind = line.strip_prefix("## ").unwrap_or(kind);
        if let Some((name, _)) = line.strip_prefix("| `").and_then(|rest| rest.split_once('`')) {
            assert!(rows.insert((kind.to_owned(), name.to_owned())), "{kind}: {name} has two rows");
        }
    }
    rows
}
