//! The state of one reading.

use super::anchors::Anchors;
use super::cursor::Cursor;
use super::{MAX_DEPTH, Problem};
use serde_json::Value;

/// What a scalar means: its text, whether it is written without quotes, and the suffix of its tag of the core schema.
pub(super) type Scalar = fn(&str, bool, Option<&str>) -> Value;

/// What is read, and what is known by now. Where it stands when something is wrong is where the mistake is.
pub(super) struct Reader<'a> {
    pub(super) cursor: Cursor<'a>,
    pub(super) anchors: Anchors<'a>,
    /// How many lists and objects are open.
    pub(super) depth: usize,
    pub(super) scalar: Scalar,
}

impl Reader<'_> {
    /// One list or object more is open.
    pub(super) fn enter(&mut self) -> Result<(), Problem> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(Problem::TooDeep) } else { Ok(()) }
    }
}
