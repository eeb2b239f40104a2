//! The state of the reader.

use super::anchors::Anchors;
use super::cursor::Cursor;
use super::{MAX_DEPTH, Problem};
use serde_json::Value;

/// A function that returns the value of a scalar. The arguments are the scalar's text, whether it is unquoted, and the
/// suffix of its core-schema tag.
pub(super) type Scalar = fn(&str, bool, Option<&str>) -> Value;

/// The input and the state of the reader. After an error, the cursor is at the mistake.
pub(super) struct Reader<'a> {
    pub(super) cursor: Cursor<'a>,
    pub(super) anchors: Anchors<'a>,
    /// The number of open lists and objects.
    pub(super) depth: usize,
    pub(super) scalar: Scalar,
}

impl Reader<'_> {
    /// Counts another open list or object.
    pub(super) fn enter(&mut self) -> Result<(), Problem> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(Problem::TooDeep) } else { Ok(()) }
    }
}
