//! How strictly the host checks a manifest for values that an API server would refuse.

use serde::{Deserialize, Serialize};

/// How strictly the host checks a manifest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Checks {
    /// Checks nothing.
    #[default]
    Nothing,
    /// Checks values only. Ignores field names: a server that is newer than this program may have fields that the
    /// program does not know.
    Values,
    /// Checks values and field names: every field in a manifest must be a field of its kind.
    Fields,
}
