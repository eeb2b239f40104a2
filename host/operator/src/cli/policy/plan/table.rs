//! Prints the changes for people, with a line for each field. If many objects have the same change, they share one
//! line.

use std::collections::BTreeMap;

use kaos_policy::contract::Reference;
use serde_json::Value;

use super::super::table::Table;
use crate::plan::{Change, Child, Difference, Field, Side};

/// The minimum number of objects that share a line.
const MANY: usize = 4;

/// The cells of a line, without the object.
pub(in crate::cli::policy) type TableLine = [String; 4];

pub(super) fn of(differences: &[Difference]) -> String {
    let rows = rows(differences);
    if rows.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["OBJECT", "CHILD", "FIELD", "BEFORE", "AFTER"]);
    for row in rows {
        table.row(row);
    }
    format!("{table}\n")
}

/// Returns the rows of the table: object, child, field, and the values before and after.
pub(in crate::cli::policy) fn rows(differences: &[Difference]) -> Vec<[String; 5]> {
    let changed: Vec<&Difference> = differences.iter().filter(|difference| difference.is_change()).collect();
    let mut same: BTreeMap<(String, TableLine), usize> = BTreeMap::new();
    for (object, line) in changed.iter().flat_map(|difference| lines(difference)) {
        *same.entry((object.kind.clone(), folded(&line))).or_default() += 1;
    }
    let mut rows = Vec::new();
    for (object, line) in changed.iter().flat_map(|difference| lines(difference)) {
        let key = (object.kind.clone(), folded(&line));
        match same.get_mut(&key) {
            // The table already has the line that these objects share.
            Some(0) => {}
            Some(count) if *count >= MANY => {
                let [child, field, before, after] = key.1.clone();
                rows.push([
                    format!("{count} {}s, such as {}", object.kind, place(object)),
                    child,
                    field,
                    before,
                    after,
                ]);
                *count = 0;
            }
            _ => {
                let [child, field, before, after] = line;
                rows.push([object.to_string(), child, field, before, after]);
            }
        }
    }
    rows
}

fn place(object: &Reference) -> String {
    object.namespace.as_ref().map_or_else(|| object.name.clone(), |namespace| format!("{namespace}/{}", object.name))
}

/// Removes the name of the child, because this name differs between objects.
fn folded(line: &TableLine) -> TableLine {
    let [child, field, before, after] = line.clone();
    [child.split('/').next().unwrap_or_default().to_owned(), field, before, after]
}

/// Returns a line for each change of an object: the child, the field, and the values before and after.
pub(in crate::cli::policy) fn lines(difference: &Difference) -> Vec<(&Reference, TableLine)> {
    let Difference { object, before, after, children, .. } = difference;
    let said = |side: &Option<Side>| side.as_ref().map_or_else(|| "no policy".to_owned(), |side| side.said.to_string());
    let mut lines = Vec::new();
    if said(before) != said(after) {
        lines.push([String::new(), String::new(), said(before), said(after)]);
    }
    for Child { child, change, rolls, refused, .. } in children {
        let name = format!("{}/{}", child.kind, child.name);
        let nothing = || "-".to_owned();
        match change {
            Change::Added => lines.push([name, String::new(), nothing(), "new".to_owned()]),
            Change::Removed => lines.push([name, String::new(), "there".to_owned(), "goes".to_owned()]),
            Change::Changed(fields) => {
                for field in fields {
                    let (before, after) = texts(field);
                    lines.push([name.clone(), field.path.clone(), before, after]);
                }
                if *rolls {
                    lines.push([name, "(pods)".to_owned(), String::new(), "replaced".to_owned()]);
                }
            }
        }
        if refused.is_some() {
            let shown = format!("{}/{}", child.kind, child.name);
            lines.push([shown, "(API server)".to_owned(), String::new(), "refused".to_owned()]);
        }
    }
    lines.into_iter().map(|line| (object, line)).collect()
}

/// Returns the two values as texts. If the texts have several lines, returns only the first differing line of each.
fn texts(field: &Field) -> (String, String) {
    match (&field.before, &field.after) {
        (Some(Value::String(old)), Some(Value::String(new))) if old.contains('\n') || new.contains('\n') => {
            let (mut old, mut new) = (old.lines().peekable(), new.lines().peekable());
            while old.peek().is_some() && old.peek() == new.peek() {
                old.next();
                new.next();
            }
            let line = |mut lines: std::iter::Peekable<std::str::Lines<'_>>| {
                lines.next().map_or_else(|| "(its end)".to_owned(), |line| line.trim().to_owned())
            };
            (line(old), line(new))
        }
        (before, after) => (value(before.as_ref()), value(after.as_ref())),
    }
}

fn value(value: Option<&Value>) -> String {
    match value {
        None => "-".to_owned(),
        Some(Value::String(text)) if text.is_empty() => "\"\"".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
