//! `-o json`: prints the summary and all details of the changes.

use std::io;

use serde_json::{Value, json};

use super::{super::output::Output, Summary};
use crate::plan::{Difference, Fuel};

pub(super) fn write(out: &mut Output, differences: &[Difference], summary: &Summary) -> io::Result<()> {
    let Summary { objects, changed, rolls, refused, failed, waiting, fuel: (before, after) } = summary;
    let fuel = |Fuel { median, most }: &Fuel| json!({"median": median, "most": most});
    let changes: Vec<&Difference> = differences.iter().filter(|difference| difference.is_change()).collect();
    let held = differences.iter().filter(|difference| !difference.waits_for.is_empty());
    let held: Vec<Value> = held.map(|it| json!({"object": it.object, "waitsFor": it.waits_for})).collect();
    let document: Value = json!({
        "objects": objects, "changed": changed, "rolls": rolls, "refused": refused, "failed": failed,
        "fuel": {"before": fuel(before), "after": fuel(after)},
        "changes": changes, "waiting": waiting, "held": held,
    });
    out.json(&document)
}
