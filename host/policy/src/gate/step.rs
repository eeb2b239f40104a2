//! The steps of the gate.

use serde::Serialize;

/// One step of the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    /// The number of bytes is within the limit.
    Size,
    /// The size of the unpacked bytes is within the limit.
    Decompress,
    /// The digest equals the pinned digest.
    Digest,
    /// The bytes are a component that implements this contract. The component imports only types, and is within the
    /// bounds.
    Inspect,
    /// The component compiles within the limits for time and memory.
    Compile,
    /// The code has the exports of its world and can be instantiated.
    Instantiate,
    /// The component's description is valid.
    Describe,
    /// The package's settings fit the policy's schema.
    Settings,
    /// The policy answers correctly for its own samples.
    Conformance,
}
