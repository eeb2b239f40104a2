//! The errors of an inspection: one variant for each reason why bytes are not a policy. The compile child sends these
//! errors to the operator, so every error can be serialized.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::version::HOST;

/// A reason why bytes are not a component that implements this contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum InspectError {
    /// The bytes are compiled code.
    #[error("the bytes are precompiled code: use the component from which the code was compiled")]
    Precompiled,
    /// The bytes are a core module.
    #[error("the bytes are a core module: convert the module to a component with `kaos-operator policy build`")]
    CoreModule,
    /// The bytes are WebAssembly text.
    #[error("the bytes are WebAssembly text: assemble the text with `wasm-tools parse`")]
    TextFormat,
    /// The bytes are not WebAssembly.
    #[error("the bytes are not WebAssembly")]
    NotWasm,
    /// The bytes cannot be parsed or are not valid.
    #[error("the bytes are not a valid component: {reason} (at byte {offset})")]
    Malformed {
        /// The parser's message.
        reason: String,
        /// The offset of the error.
        offset: u64,
    },
    /// The component is not a policy.
    #[error(
        "the component is not a policy: it has no custom section `kaos:policy` and exports none of the contract's \
        interfaces"
    )]
    NotAPolicy,
    /// The component mixes versions of the contract.
    #[error("the component's custom section says contract {section}, but its exports say {exports}")]
    MixedVersions {
        /// The version in the custom section.
        section: String,
        /// The version in the exports.
        exports: String,
    },
    /// The component uses another version of the contract.
    #[error("the policy uses contract kaos:policy {speaks}, but this program supports only {HOST}")]
    WrongVersion {
        /// The version of the contract that the policy was built for.
        speaks: String,
    },
    /// The component uses a draft of the contract, which may change without notice.
    #[error(
        "the policy uses contract kaos:policy {speaks}, which is not released, but this program supports {HOST}: build \
         the policy with the SDK of a released version"
    )]
    Unreleased {
        /// The draft that the policy was built for.
        speaks: String,
    },
    /// The component imports WASI.
    #[error("the component imports WASI ({}): build it for wasm32-unknown-unknown, and use nothing that needs an operating system", .0.join(", "))]
    ImportsWasi(Vec<String>),
    /// The component imports something other than types.
    #[error("the component imports {}, but a policy may import types only", .0.join(", "))]
    Imports(Vec<String>),
    /// The component does not export every interface of its world.
    #[error("the component does not export {}: a policy exports meta and translation, and an overlay exports meta and amendment", .0.join(", "))]
    MissingInterfaces(Vec<String>),
    /// The component exports the interfaces of a policy and also the interfaces of an overlay.
    #[error(
        "the component exports both translation and amendment: a policy must export only translation, and an overlay \
         must export only amendment"
    )]
    TwoWorlds,
    /// The component has too many parts of one kind.
    #[error("the component has {count} {part}, but the limit is {limit}: leave out unused code")]
    TooMany {
        /// The kind of part.
        part: Part,
        /// The number of parts.
        count: u64,
        /// The maximum number of parts.
        limit: u64,
    },
    /// A function is too large to compile in reasonable time.
    #[error(
        "function {index} has {bytes} bytes, but the limit is {limit}: split the function, build with opt-level s, or \
         start the operator with --large-policies"
    )]
    FunctionTooLarge {
        /// The function's index in its module.
        index: u32,
        /// The function's size.
        bytes: u64,
        /// The maximum size of a function.
        limit: u64,
    },
    /// A name of an import, export, field or case is too long. Validation compares each name many times.
    #[error("a name in the component has {bytes} bytes, but the limit is {limit}: the name begins with `{begins}`")]
    NameTooLong {
        /// The beginning of the name.
        begins: String,
        /// The name's length.
        bytes: usize,
        /// The maximum length of a name.
        limit: usize,
    },
    /// Validation of the component's types takes too long.
    #[error("checking the component's types took longer than {seconds} s and was stopped: use fewer and smaller types")]
    TookTooLong {
        /// The limit of processor time in seconds.
        seconds: u64,
    },
}

/// The kinds of parts of a component. Each kind has a maximum number of parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// Functions in all modules.
    Functions,
    /// Modules and components inside the component.
    Modules,
    /// Types in all modules and components.
    Types,
    /// Fields, cases, parameters and declarations of the types of components.
    Members,
    /// Data and element segments.
    Segments,
    /// Memories of all modules.
    Memories,
    /// Function tables of all modules.
    Tables,
    /// Instances of modules and components.
    Instances,
    /// Arguments of instances.
    Arguments,
    /// Nesting levels of components or types.
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
            Self::Memories => "memories",
            Self::Tables => "tables",
            Self::Instances => "instances",
            Self::Arguments => "arguments of instances",
            Self::Levels => "levels of nested components and types",
        })
    }
}

impl InspectError {
    /// Returns the reason in one word.
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
            Self::Unreleased { .. } => "Unreleased",
            Self::ImportsWasi(_) => "ImportsWasi",
            Self::Imports(_) => "Imports",
            Self::MissingInterfaces(_) => "MissingInterfaces",
            Self::TwoWorlds => "TwoWorlds",
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
