//! The errors of settings and of schemas.

use std::fmt;

use super::{Path, Source};

/// A setting that does not fit the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsError {
    /// The name of the policy with the setting. Empty if the error does not belong to a single policy.
    pub policy: String,
    /// The setting.
    pub path: Path,
    /// The source of the value, if it is known.
    pub source: Option<Source>,
    /// The problem and the remedy.
    pub message: String,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, path, source, message } = self;
        match (policy.as_str(), path.names()) {
            ("", []) => f.write_str("the settings")?,
            ("", _) => write!(f, "setting {path}")?,
            (policy, []) => write!(f, "the settings of {policy}")?,
            (policy, _) => write!(f, "setting {policy}.{path}")?,
        }
        if let Some(source) = source {
            write!(f, ", given by {source},")?;
        }
        write!(f, " {message}")
    }
}

/// Every error in the settings of one policy; never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct SettingsErrors(pub Vec<SettingsError>);

/// A reason why the host refuses a settings schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The schema is not JSON.
    #[error("the settings schema is not JSON: {0}")]
    NotJson(String),
    /// The JSON is not a valid schema of an object.
    #[error("the settings schema is invalid: {0}")]
    Invalid(String),
    /// The text of the schema is too long.
    #[error(
        "the settings schema has {bytes} bytes, but the limit is {limit}: use shorter descriptions or fewer settings"
    )]
    TooLong {
        /// The number of bytes.
        bytes: usize,
        /// The maximum number of bytes.
        limit: usize,
    },
    /// With each `$ref` expanded, the schema has too many values for a validator.
    #[error(
        "with each $ref expanded, the settings schema has more than {limit} values; the first value above the limit is \
         at {path}: use fewer references around this path"
    )]
    TooMuch {
        /// The path of the first value in the schema that is above the limit.
        path: String,
        /// The maximum number of values.
        limit: usize,
    },
    /// With each `$ref` expanded, the schema has too many levels for a validator.
    #[error("with each $ref expanded, the settings schema has more than {limit} levels at {path}: use fewer levels")]
    TooDeep {
        /// The path of the first value in the schema that is above the limit.
        path: String,
        /// The maximum number of levels.
        limit: usize,
    },
    /// A reference is circular.
    #[error(
        "the reference {path} of the settings schema is circular: replace the reference by the levels that the \
         settings need"
    )]
    Circular {
        /// The path of the reference that closes the circle.
        path: String,
    },
    /// A reference points outside of the schema.
    #[error(
        "the reference {path} of the settings schema is `{target}`: write `#`, or `#/` and a path within the schema, \
         without `%`"
    )]
    Reference {
        /// The path of the reference.
        path: String,
        /// The reference.
        target: String,
    },
    /// The schema contains a keyword that could change the target of a reference.
    #[error("the keyword {path} of the settings schema is not supported: remove it, and refer to $defs with $ref")]
    Foreign {
        /// The path of the keyword.
        path: String,
    },
    /// The schema has too many patterns.
    #[error("the settings schema has {count} patterns, but the limit is {limit}: put equal patterns into $defs")]
    TooManyPatterns {
        /// The number of patterns.
        count: usize,
        /// The maximum number of patterns.
        limit: usize,
    },
    /// A pattern is too long.
    #[error(
        "the pattern {path} of the settings schema has {bytes} bytes, but the limit is {limit}: write a shorter \
         pattern, and use maxLength or enum"
    )]
    PatternTooLong {
        /// The path of the pattern.
        path: String,
        /// The number of bytes.
        bytes: usize,
        /// The maximum number of bytes.
        limit: usize,
    },
    /// The texts of the schema's distinct patterns are too long in total.
    #[error(
        "the patterns of the settings schema have {bytes} bytes in total, but the limit is {limit}: write shorter or \
         fewer patterns"
    )]
    PatternsTooLong {
        /// The number of bytes.
        bytes: usize,
        /// The maximum number of bytes.
        limit: usize,
    },
    /// The distinct patterns of the schema are too large in total after compilation.
    #[error(
        "the patterns of the settings schema have more than {limit} bytes when compiled; the first pattern above the \
         limit is at {path}: use maxLength for lengths, and fewer patterns"
    )]
    PatternsTooLarge {
        /// The path of the first pattern in the schema that is above the limit.
        path: String,
        /// The maximum number of bytes.
        limit: usize,
    },
    /// The schema has too many settings or too many levels.
    #[error("the settings schema is too large: the limits are {limit} settings and {depth} levels")]
    TooLarge {
        /// The maximum number of settings.
        limit: usize,
        /// The maximum number of levels.
        depth: usize,
    },
    /// Two settings take their value from the same variable.
    #[error(
        "in the settings schema, variable {variable} sets both {first} and {second}: use one variable for each setting"
    )]
    AmbiguousVariable {
        /// The variable.
        variable: String,
        /// One of the two settings that take their value from the variable.
        first: Path,
        /// The other setting.
        second: Path,
    },
    /// The schema's own defaults do not fit the schema.
    #[error("the defaults of the settings schema do not fit the schema: {0}")]
    Defaults(SettingsErrors),
}
