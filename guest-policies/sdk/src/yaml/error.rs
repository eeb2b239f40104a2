//! What is wrong with a YAML text, and the bounds that it is held to.

use alloc::string::String;

/// How deep lists and objects may be nested.
pub const MAX_DEPTH: usize = 64;
/// How much aliases may add: values and bytes of text together.
pub const MAX_ALIASED: usize = 1 << 20;

/// What is wrong with a YAML text, and where. Lines and columns count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct Error {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// The kinds of mistakes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// No YAML.
    #[error("{0}")]
    Syntax(&'static str),
    /// A second document.
    #[error("there must be one document only; remove this one")]
    SecondDocument,
    /// Nested deeper than [`MAX_DEPTH`].
    #[error("nested too deeply; at most 64 levels are read")]
    TooDeep,
    /// Aliases add more than [`MAX_ALIASED`].
    #[error("aliases repeat too much; write out what is needed")]
    TooManyAliases,
    /// An alias of something that is not complete, or not there.
    #[error("this alias has no anchor before it")]
    UnknownAlias,
    /// A key twice in one object.
    #[error("the key \"{}\" is there twice; remove one", crate::quote::shown(.0, 100))]
    DuplicateKey(String),
    /// A list or object as a key.
    #[error("a key must be plain text")]
    ComplexKey,
    /// `<<` with something else than objects.
    #[error("<< takes an object, or a list of objects")]
    BadMerge,
}
