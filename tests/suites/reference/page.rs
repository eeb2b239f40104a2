//! Writes pages, and checks that an existing page is up to date.

use std::{fs, path::Path};

use serde_json::Value;

/// The path of the repository's top folder.
pub(crate) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The command that generates the pages again.
pub(crate) const COMMAND: &str = "`UPDATE_REFERENCE=1 cargo test --locked --workspace --all-features --test reference`";

/// Fails if the page `name` below `docs/reference` differs from `made`. If `UPDATE_REFERENCE` is set, writes the page
/// instead.
pub(crate) fn stands(name: &str, made: &str) {
    let page = Path::new(ROOT).join("docs/reference").join(name);
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        fs::write(&page, made).unwrap();
    }
    let kept = fs::read_to_string(&page).unwrap_or_default();
    let differing = kept.lines().zip(made.lines()).find(|(kept, made)| kept != made);
    assert!(kept == made, "docs/reference/{name} is stale: regenerate it with {COMMAND}\n{differing:#?}");
}

/// Returns the title of a page, and the comment that says how to generate the page.
pub(crate) fn head(title: &str, source: &str) -> String {
    format!("# {title}\n\n<!-- Generated from {source} by {COMMAND}. -->\n\n")
}

/// Returns a table.
pub(crate) fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let cell = |cell: &String| if cell.is_empty() { "| ".to_owned() } else { format!("| {cell} ") };
    let line = |cells: &[String]| format!("{}|\n", cells.iter().map(cell).collect::<String>());
    let heads: Vec<String> = heads.iter().map(|&head| head.to_owned()).collect();
    let rows: String = rows.iter().map(|row| line(row)).collect();
    format!("{}|{}\n{rows}\n", line(&heads), "---|".repeat(heads.len()))
}

/// Formats prose for a table cell.
pub(crate) fn prose(text: &str) -> String {
    // Keep the text between backticks unchanged, except characters that would end the cell.
    let parts = text.split('`').enumerate().map(|(number, part)| {
        let part = part.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
        let spaced = |part: String, of: &str| {
            let before = if of.starts_with(char::is_whitespace) && !part.is_empty() { " " } else { "" };
            let after = if of.ends_with(char::is_whitespace) { " " } else { "" };
            format!("{before}{part}{after}")
        };
        let part = if number % 2 == 0 { part.replace('<', "&lt;").replace('*', "\\*") } else { part };
        spaced(part, text.split('`').nth(number).unwrap_or_default())
    });
    parts.collect::<Vec<_>>().join("`").trim().to_owned()
}

/// Formats code for a table cell.
pub(crate) fn code(text: &str) -> String {
    let text = text.replace('|', "\\|");
    match text.as_str() {
        "" => String::new(),
        text if text.contains('`') => format!("`` {text} ``"),
        text => format!("`{text}`"),
    }
}

/// Returns the limits that a schema sets for a value in addition to its type, such as a minimum.
pub(crate) fn limits(schema: &Value) -> Vec<String> {
    let words = [
        ("minimum", "at least", ""),
        ("maximum", "at most", ""),
        ("minLength", "at least", " characters"),
        ("maxLength", "at most", " characters"),
        ("minItems", "at least", " items"),
        ("maxItems", "at most", " items"),
    ];
    let mut limits: Vec<String> = Vec::new();
    if let Some(one) = schema["enum"].as_array() {
        let values: Vec<String> =
            one.iter().filter(|value| !value.is_null()).map(|value| code(&plain(value))).collect();
        limits.push(format!("one of {}", values.join(", ")));
    }
    let bound = |(key, before, after): &(&str, &str, &str)| Some(format!("{before} {}{after}", whole(&schema[*key])?));
    limits.extend(words.iter().filter_map(bound));
    limits.extend(schema["pattern"].as_str().map(|pattern| format!("matches {}", code(pattern))));
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        limits.extend(rule["message"].as_str().map(prose));
    }
    limits
}

/// Returns a value in the form that a person would write.
pub(crate) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns a schema's bound without the ending `.0`, because schemas contain bounds as floating-point numbers. Returns
/// `None` if the value is not a number.
fn whole(value: &Value) -> Option<String> {
    let number = value.as_number()?.to_string();
    Some(number.strip_suffix(".0").map_or_else(|| number.clone(), str::to_owned))
}
