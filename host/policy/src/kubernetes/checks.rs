//! How much of a manifest is checked.

use serde::Serialize;

/// How much of a manifest is checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum Checks {
    /// Nothing.
    #[default]
    Nothing,
    /// Its values. A server may be newer than this program and have fields that this does not know.
    Values,
    /// Its values, and whether its kind has all of its fields.
    Fields,
}
