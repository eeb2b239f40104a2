//! The table of `render --explain` and `policy explain` with the origin of each value in each child.

use std::io;

use kaos_policy::render::Explained;

use super::{output::Output, table::Table, variables::heading};
use crate::{input::Document, masking::Masks, offline::Entry};

/// Prints the name of one object, and below the name the origin of each value in its children. With `with_status`, adds
/// the phase and the message that the object would get.
pub(super) fn write(out: &mut Output, document: &Document, entry: &Entry, with_status: bool) -> io::Result<()> {
    heading(out, document, entry, with_status)?;
    let table = table(entry);
    if table.is_empty() { out.text("no children\n\n") } else { out.text(&format!("{table}\n")) }
}

/// Returns a table with a row for each value.
pub(in crate::cli) fn table(entry: &Entry) -> Table {
    let mut table = Table::new(&["CHILD", "FIELD", "FROM"]);
    for row in rows(entry) {
        table.row(row);
    }
    table
}

/// Returns the child, the path and the origin of each value. Masks secret values in paths and origins.
pub(in crate::cli) fn rows(entry: &Entry) -> Vec<[String; 3]> {
    let masks = Masks::of_pass(&entry.rendered);
    let row = |Explained { child, path, from, layer, overlay }| {
        let of_overlay = overlay.map(|overlay| format!("the overlay {overlay}")).filter(|overlay| *overlay != from);
        let from = [Some(from), layer, of_overlay].into_iter().flatten().collect::<Vec<_>>();
        [child, masks.text(&path), masks.text(&from.join(", "))]
    };
    entry.rendered.explained().into_iter().map(row).collect()
}
