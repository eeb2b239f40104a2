//! The two forms of a policy's code.

use serde::{Deserialize, Serialize};

/// The form of a policy's code, as its author ships it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CodeForm {
    /// A WebAssembly component, gzipped or not.
    #[default]
    Component,
    /// A script: JavaScript as UTF-8 text.
    Script,
}
