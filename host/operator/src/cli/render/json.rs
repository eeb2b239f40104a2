//! `-o json`: prints a list with one entry for each object. An entry contains all results for its object.

use std::io;

use kaos_policy::contract::Outcome;

use super::super::output::Output;
use crate::offline::Entry;

/// Writes each entry immediately, so that the memory never contains the whole list as text.
#[derive(Debug, Default)]
pub(super) struct JsonList {
    begun: bool,
}

impl JsonList {
    pub(super) fn write(&mut self, out: &mut Output, entry: &Entry) -> io::Result<()> {
        out.text(if self.begun { ",\n" } else { "[\n" })?;
        self.begun = true;
        out.json(&entry.rendered.document(entry.outcome == Outcome::Gated, &entry.status))
    }

    pub(super) fn finish(self, out: &mut Output) -> io::Result<()> {
        out.text(if self.begun { "]\n" } else { "[]\n" })
    }
}
