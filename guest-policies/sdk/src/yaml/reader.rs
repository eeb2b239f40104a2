//! The state of the reader.

use super::anchors::Anchors;
use super::cursor::Cursor;
use super::{MAX_DEPTH, Problem};
use serde_json::Value;

/// Resolves a scalar from its text, whether it is unquoted, and the suffix of its core-schema tag.
pub(super) type Scalar = fn(&str, bool, Option<&str>) -> Value;

/// The input and everything known so far. On an error, the cursor is at the mistake.
pub(super) struct Reader<'a> {
    pub(super) cursor: Cursor<'a>,
    pub(super) anchors: Anchors<'a>,
    /// The number of open lists and objects.
    pub(super) depth: usize,
    pub(super) scalar: Scalar,
}

impl Reader<'_> {
    /// Opens another list or object.
    pub(super) fn enter(&mut self) -> Result<(), Problem> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(Problem::TooDeep) } else { Ok(()) }
    }
}
