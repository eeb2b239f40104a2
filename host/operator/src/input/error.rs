//! The errors of input.

use super::{DocumentOrigin, Identity};
use crate::reading::ReadError;

/// The reason why the program cannot use the input.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// A file or directory cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A directory contains no file with a known extension.
    #[error("{path}: no .yaml, .yml or .json file in this directory (--recursive also reads its subdirectories)")]
    EmptyDirectory {
        /// The path, as the user gave it.
        path: String,
    },
    /// Standard input was named more than once.
    #[error("-: standard input can be read only once")]
    StandardInputTwice,
    /// A text is neither YAML nor JSON.
    #[error("{origin}: is not YAML or JSON: {message}: correct the input")]
    Syntax {
        /// The document.
        origin: DocumentOrigin,
        /// The message of the parser, with line and column in the file.
        message: String,
    },
    /// A text is valid YAML or JSON, but has a repeated field or exceeds a size limit.
    #[error("{origin}: {message}: correct the input")]
    Unusable {
        /// The document.
        origin: DocumentOrigin,
        /// The problem, with line and column in the file.
        message: String,
    },
    /// A file has several documents, but only one document is allowed.
    #[error("{path}: has {count} documents, but must have one: merge them")]
    Several {
        /// The path, as the user gave it.
        path: String,
        /// The number of documents.
        count: usize,
    },
    /// A document is not a Kubernetes object.
    #[error("{origin}: {path}{}{message}", if path.is_empty() { "" } else { ": " })]
    NoObject {
        /// The document.
        origin: DocumentOrigin,
        /// The missing or wrong field.
        path: &'static str,
        /// The problem, and the remedy.
        message: String,
    },
    /// The same object occurs twice.
    #[error("{second}: {identity} was already given in {first}: remove one of the two")]
    Duplicate {
        /// The object.
        identity: Box<Identity>,
        /// The position of the first occurrence.
        first: DocumentOrigin,
        /// The position of the second occurrence.
        second: DocumentOrigin,
    },
}
