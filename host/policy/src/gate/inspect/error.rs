//! One error for each way in which the bytes themselves are no policy. They travel from the process that looked into the
//! bytes to the one that asked, so all of them can be written and read.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::version::HOST;

/// Why bytes are no component of this contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum InspectError {
    /// They are compiled code.
    #[error("it is precompiled code: give the component that it was compiled from")]
    Precompiled,
    /// They are a module.
    #[error("it is a core module: make a component of it with `kaos-operator policy build`")]
    CoreModule,
    /// They are the text of a component or module.
    #[error("it is WebAssembly text: assemble it with `wasm-tools parse`")]
    TextFormat,
    /// They are nothing of the kind.
    #[error("it is not WebAssembly")]
    NotWasm,
    /// They do not parse, or do not validate.
    #[error("it is not a valid component: {reason} (at byte {offset})")]
    Malformed {
        /// What the parser says.
        reason: String,
        /// Where.
        offset: u64,
    },
    /// They are a component of another kind.
    #[error("it is not a policy: it has no custom section `kaos:policy` and exports none of the contract's interfaces")]
    NotAPolicy,
    /// The versions in it are not of one contract.
    #[error("its custom section says contract {section}, its exports say {exports}")]
    MixedVersions {
        /// In the section.
        section: String,
        /// In the exports.
        exports: String,
    },
    /// It speaks another version of the contract.
    #[error("the policy speaks kaos:policy {speaks}, this host speaks {HOST}")]
    WrongVersion {
        /// The policy's.
        speaks: String,
    },
    /// It wants WASI.
    #[error("it imports WASI ({}): build it for wasm32-unknown-unknown, and use nothing that needs an operating system", .0.join(", "))]
    ImportsWasi(Vec<String>),
    /// It wants something else.
    #[error("it imports {}: a policy imports types and nothing else", .0.join(", "))]
    Imports(Vec<String>),
    /// It lacks interfaces.
    #[error("it does not export {}: a policy exports meta, inputs, environment, translation and status, an environment overlay the first three", .0.join(", "))]
    MissingInterfaces(Vec<String>),
    /// It has too many parts.
    #[error("it has {count} {part}, at most {limit}: leave out what is not used")]
    TooMany {
        /// Parts.
        part: Part,
        /// How many there are.
        count: u64,
        /// How many there may be.
        limit: u64,
    },
    /// A function is too large to be compiled in reasonable time.
    #[error("function {index} has {bytes} bytes, at most {limit}: split it, or build with opt-level s")]
    FunctionTooLarge {
        /// Which function of its module.
        index: u32,
        /// How large it is.
        bytes: u64,
        /// How large it may be.
        limit: u64,
    },
    /// A name of an import, an export, a field or a case is too long to be compared again and again.
    #[error("a name in it has {bytes} bytes, at most {limit}: it begins with `{begins}`")]
    NameTooLong {
        /// How the name begins.
        begins: String,
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        limit: usize,
    },
    /// Comparing its types takes very long.
    #[error("checking its types took longer than {seconds} s and was stopped: use fewer and smaller types")]
    TookTooLong {
        /// The processor time that was used up.
        seconds: u64,
    },
}

/// What a component has a limited number of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// Functions in all modules.
    Functions,
    /// Modules and components within.
    Modules,
    /// Types in all modules and components.
    Types,
    /// Fields, cases, parameters and declarations of the types of components.
    Members,
    /// Data and element segments.
    Segments,
    /// Instances of modules and components.
    Instances,
    /// What is handed to instances.
    Arguments,
    /// Components or types in one another.
    Levels,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Functions => "functions",
            Self::Modules => "modules and components",
            Self::Types => "types",
            Self::Members => "fields, cases and declarations in types",
            Self::Segments => "segments",
            Self::Instances => "instances",
            Self::Arguments => "arguments of instances",
            Self::Levels => "levels of components and types in one another",
        })
    }
}

impl InspectError {
    /// What is wrong, in one word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Precompiled => "Precompiled",
            Self::CoreModule => "CoreModule",
            Self::TextFormat => "TextFormat",
            Self::NotWasm => "NotWasm",
            Self::Malformed { .. } => "Malformed",
            Self::NotAPolicy => "NotAPolicy",
            Self::MixedVersions { .. } => "MixedVersions",
            Self::WrongVersion { .. } => "WrongVersion",
            Self::ImportsWasi(_) => "ImportsWasi",
            Self::Imports(_) => "Imports",
            Self::MissingInterfaces(_) => "MissingInterfaces",
            Self::TooMany { .. } => "TooMany",
            Self::FunctionTooLarge { .. } => "FunctionTooLarge",
            Self::NameTooLong { .. } => "NameTooLong",
            Self::TookTooLong { .. } => "TypesTooCostly",
        }
    }
}

impl From<wasmparser::BinaryReaderError> for InspectError {
    fn from(error: wasmparser::BinaryReaderError) -> Self {
        Self::Malformed { reason: error.message().to_owned(), offset: error.offset() as u64 }
    }
}
