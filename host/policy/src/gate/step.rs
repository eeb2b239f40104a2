//! The steps of the gate.

use serde::Serialize;

/// One step of the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    /// The bytes are not too many.
    Size,
    /// They unpack to not too many.
    Decompress,
    /// They are the ones that were meant.
    Digest,
    /// They are a component of this contract, without imports, within bounds.
    Inspect,
    /// They compile, within bounds.
    Compile,
    /// The code fits its world and can be instantiated.
    Instantiate,
    /// What it says of itself can be.
    Describe,
    /// The settings that come with it fit its schema.
    Settings,
    /// It answers for its own samples as it must.
    Conformance,
}
