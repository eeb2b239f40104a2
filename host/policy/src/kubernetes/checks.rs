//! The levels of checking a manifest.

use serde::Serialize;

/// The level of checking a manifest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum Checks {
    /// Checks nothing.
    #[default]
    Nothing,
    /// Checks values only. A server that is newer than this program may have fields that the program does not know.
    Values,
    /// Checks values, and that the kind has every field.
    Fields,
}
