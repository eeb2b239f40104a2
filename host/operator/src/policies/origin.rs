//! The origins of components.

use std::{fmt, path::PathBuf};

/// The origin of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComponentOrigin {
    /// The binary.
    Embedded,
    /// A file, with the path that the user gave.
    File(PathBuf),
}

impl fmt::Display for ComponentOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded => f.write_str("the embedded policy"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}
