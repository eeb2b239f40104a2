//! The errors and the limits of the YAML reader.

use alloc::string::String;

/// The maximum nesting depth of lists and objects.
pub const MAX_DEPTH: usize = 64;
/// The maximum size that anchors and aliases can add: the number of values plus the bytes of text.
pub const MAX_ALIASED: usize = 1 << 20;

/// An error in a YAML text, and its position. The first line and the first column have the number 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct Error {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
    /// The kind of error.
    pub problem: Problem,
}

/// The kinds of errors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The text is not YAML.
    #[error("{0}")]
    Syntax(&'static str),
    /// The text contains a second document.
    #[error("only one document is allowed; remove this one")]
    SecondDocument,
    /// Lists and objects are nested deeper than [`MAX_DEPTH`].
    #[error("nested too deeply; at most 64 levels are read")]
    TooDeep,
    /// Anchors and aliases copy more than [`MAX_ALIASED`].
    #[error("aliases repeat too many values; write the values out")]
    TooManyAliases,
    /// An alias names an anchor that does not exist, or an anchor on a value that is still incomplete.
    #[error("this alias has no anchor before it")]
    UnknownAlias,
    /// A key occurs twice in one object.
    #[error("the key \"{}\" occurs twice; remove one", crate::quote::shown(.0, 100))]
    DuplicateKey(String),
    /// A key is a list or an object.
    #[error("a key must be plain text")]
    ComplexKey,
    /// The value of `<<` is neither an object nor a list of objects.
    #[error("<< takes an object, or a list of objects")]
    BadMerge,
}
