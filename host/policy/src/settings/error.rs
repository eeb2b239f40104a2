//! What can be wrong with settings and schemas.

use std::fmt;

use super::{Path, Source};

/// One setting that is not as the schema wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsError {
    /// The policy whose setting it is; empty where it is not one policy's.
    pub policy: String,
    /// The setting.
    pub path: Path,
    /// Who gave the value, where that is known.
    pub source: Option<Source>,
    /// What is wrong and what to do.
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

/// Everything that is wrong with the settings of one policy; never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct SettingsErrors(pub Vec<SettingsError>);

/// Why a settings schema is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It is not JSON.
    #[error("the settings schema is not JSON: {0}")]
    NotJson(String),
    /// It is JSON, but no schema of an object that can be used here.
    #[error("the settings schema is not usable: {0}")]
    Invalid(String),
    /// Its text is longer than settings need.
    #[error("the settings schema has {bytes} bytes, at most {limit}: shorten descriptions, or have fewer settings")]
    TooLong {
        /// How many it has.
        bytes: usize,
        /// How many it may have.
        limit: usize,
    },
    /// With everything that it refers to in its place, it is more than can be built.
    #[error(
        "the settings schema has more than {limit} values when each $ref is written out, the last one at {path}: refer to \
         less from there"
    )]
    TooMuch {
        /// Where that is.
        path: String,
        /// How many values there may be.
        limit: usize,
    },
    /// With everything that it refers to in its place, it is deeper than can be built.
    #[error("the settings schema nests more than {limit} levels when each $ref is written out, at {path}: nest less")]
    TooDeep {
        /// Where that is.
        path: String,
        /// How many levels there may be.
        limit: usize,
    },
    /// It has no end.
    #[error("{path} of the settings schema refers to what it lies in: write out as many levels as are needed")]
    Circular {
        /// Where the circle closes.
        path: String,
    },
    /// What it refers to is no part of it.
    #[error(
        "{path} of the settings schema refers to `{target}`: write # or #/ and the way to a part of the schema itself, \
         without %"
    )]
    Reference {
        /// Where.
        path: String,
        /// What stands there.
        target: String,
    },
    /// A keyword by which a reference might mean something else.
    #[error("{path} of the settings schema is not used here: take it out, and refer to $defs with $ref")]
    Foreign {
        /// Where.
        path: String,
    },
    /// It has more patterns than settings need.
    #[error("the settings schema has {count} patterns, at most {limit}: put those that are alike into $defs")]
    TooManyPatterns {
        /// How many it has.
        count: usize,
        /// How many it may have.
        limit: usize,
    },
    /// It has more in it than settings need.
    #[error("the settings schema is too large: at most {limit} settings, nested at most {depth} deep")]
    TooLarge {
        /// Settings.
        limit: usize,
        /// Levels.
        depth: usize,
    },
    /// One variable cannot feed two settings.
    #[error("the settings schema lets variable {variable} feed both {first} and {second}")]
    AmbiguousVariable {
        /// The variable.
        variable: String,
        /// A setting.
        first: Path,
        /// Another setting.
        second: Path,
    },
    /// The defaults do not fit.
    #[error("the defaults of the settings schema are not valid by it: {0}")]
    Defaults(SettingsErrors),
}
