//! Why input cannot be used.

use super::{Identity, Origin};
use crate::reading::ReadError;

/// Why input cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// A file or directory that cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A directory with nothing in it that could be an object.
    #[error("{path}: no .yaml, .yml or .json file in this directory (--recursive looks below it, too)")]
    EmptyDirectory {
        /// As the user named it.
        path: String,
    },
    /// Standard input was named more than once.
    #[error("-: standard input can be read only once")]
    StandardInputTwice,
    /// Text that is neither YAML nor JSON.
    #[error("{origin}: is not YAML or JSON: {message}: correct it there")]
    Syntax {
        /// The document.
        origin: Origin,
        /// What the parser says, with line and column of the file.
        message: String,
    },
    /// YAML or JSON, and not as it is read: a field twice, or more than there may be.
    #[error("{origin}: {message}: correct it there")]
    Unusable {
        /// The document.
        origin: Origin,
        /// What it is, with line and column of the file.
        message: String,
    },
    /// More than one document where one is read.
    #[error("{path}: has {count} documents, and one is read: put everything into one")]
    Several {
        /// As the user named it.
        path: String,
        /// How many there are.
        count: usize,
    },
    /// A document that is no Kubernetes object.
    #[error("{origin}: {path}{}{message}", if path.is_empty() { "" } else { ": " })]
    NoObject {
        /// The document.
        origin: Origin,
        /// The field that is missing or wrong.
        path: &'static str,
        /// What is wrong with it and what to do.
        message: String,
    },
    /// One object written twice.
    #[error("{second}: {identity} was already given in {first}: remove one of the two")]
    Duplicate {
        /// The object.
        identity: Box<Identity>,
        /// Where it was seen first.
        first: Origin,
        /// Where it was seen again.
        second: Origin,
    },
}
