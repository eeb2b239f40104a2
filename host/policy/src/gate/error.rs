//! One error for each way in which a component can be wrong.

use super::Step;
use crate::{
    compile::CompileError,
    contract::Refusal,
    cut::{NOTE, cut},
    describe::DescribeError,
    digest::Digest,
    engine::EngineError,
    failure::Failure,
    policy::AdmitError,
    render::Refused,
    settings::SettingsErrors,
};

/// Why bytes are not a policy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LoadError {
    /// There are too many.
    #[error("{bytes} bytes: a policy has at most {limit}; strip debug information and build with opt-level s")]
    TooLarge {
        /// How many there are.
        bytes: usize,
        /// How many there may be.
        limit: usize,
    },
    /// They unpack to too many.
    #[error("it unpacks to more than {limit} bytes")]
    UnpacksTooLarge {
        /// How many there may be.
        limit: usize,
    },
    /// They begin like gzip and do not go on like it.
    #[error("it is damaged gzip: {0}")]
    BadGzip(String),
    /// They are others than those that were meant.
    #[error("its digest is {found}, but policy.yaml pins {wanted}")]
    WrongDigest {
        /// Theirs.
        found: Digest,
        /// The one that was meant.
        wanted: Digest,
    },
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
    #[error("the policy speaks kaos:policy {speaks}, this host speaks {host}")]
    WrongVersion {
        /// The policy's.
        speaks: String,
        /// The host's.
        host: &'static str,
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
    /// It is built of too many parts.
    #[error("it has {count} {what}, at most {limit}")]
    TooMany {
        /// Parts.
        what: &'static str,
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
    /// It does not compile.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// Its exports do not have the types of the contract, or the code does not load.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// It cannot be instantiated.
    #[error("trial instantiation: {0}")]
    Instantiate(Failure),
    /// It does not say what it is.
    #[error("describe: {0}")]
    Silent(Failure),
    /// What it says cannot be.
    #[error(transparent)]
    Describe(#[from] DescribeError),
    /// The settings that come with it do not fit its schema.
    #[error(transparent)]
    Settings(#[from] SettingsErrors),
    /// A sample is not an object of the claimed kind.
    #[error("sample {sample} of {kind} is not usable: {reason}")]
    BadSample {
        /// The claimed kind.
        kind: String,
        /// The sample's name.
        sample: String,
        /// What is wrong.
        reason: String,
    },
    /// It fails on a sample.
    #[error("sample {sample} of {kind}: {failure}")]
    FailsSample {
        /// The claimed kind.
        kind: String,
        /// The sample's name.
        sample: String,
        /// How.
        failure: Failure,
    },
    /// It answers the same question differently.
    #[error("sample {sample} of {kind}: two passes differ in their {what}: a policy is a pure function")]
    NotDeterministic {
        /// The claimed kind.
        kind: String,
        /// The sample's name.
        sample: String,
        /// Where they differ.
        what: &'static str,
    },
    /// Its answer depends on what it was asked before.
    #[error("sample {sample} of {kind}: asked again in one sandbox, {verb} answers differently: keep no state")]
    KeepsState {
        /// The claimed kind.
        kind: String,
        /// The sample's name.
        sample: String,
        /// Which function.
        verb: crate::failure::Verb,
    },
    /// Its samples together take too long.
    #[error("its samples used up {allowed} fuel before sample {before}: give fewer or smaller ones")]
    SamplesTooCostly {
        /// What all of them may use.
        allowed: u64,
        /// The sample that was not evaluated any more.
        before: String,
    },
    /// It never comes to a plan.
    #[error("no sample of {kind} ends in a plan; the last one was refused: {}", cut(&Refused::of(refusal).to_string(), NOTE))]
    NoPlan {
        /// The claimed kind.
        kind: String,
        /// What was said to the last sample.
        refusal: Refusal,
    },
}

impl LoadError {
    /// What is wrong, in one word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "TooLarge",
            Self::UnpacksTooLarge { .. } => "UnpacksTooLarge",
            Self::BadGzip(_) => "BadGzip",
            Self::WrongDigest { .. } => "WrongDigest",
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
            Self::Compile(_) => "DoesNotCompile",
            Self::Engine(_) => "NotLoaded",
            Self::Instantiate(_) => "DoesNotStart",
            Self::Silent(_) => "DoesNotDescribeItself",
            Self::Describe(_) => "BadDescription",
            Self::Settings(_) => "BadSettings",
            Self::BadSample { .. } => "BadSample",
            Self::FailsSample { .. } => "FailsSample",
            Self::NotDeterministic { .. } => "NotDeterministic",
            Self::KeepsState { .. } => "KeepsState",
            Self::SamplesTooCostly { .. } => "SamplesTooCostly",
            Self::NoPlan { .. } => "NoPlan",
        }
    }

    /// Whether the same bytes end the same way the next time.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Compile(error) => error.is_lasting(),
            // What a component exports is in its bytes; everything else is about this machine.
            Self::Engine(error) => matches!(error, EngineError::World { .. }),
            Self::Instantiate(Failure::Sandbox(_)) => false,
            _ => true,
        }
    }

    /// The step that found it.
    pub fn step(&self) -> Step {
        match self {
            Self::TooLarge { .. } => Step::Size,
            Self::UnpacksTooLarge { .. } | Self::BadGzip(_) => Step::Decompress,
            Self::WrongDigest { .. } => Step::Digest,
            Self::Precompiled
            | Self::CoreModule
            | Self::TextFormat
            | Self::NotWasm
            | Self::Malformed { .. }
            | Self::NotAPolicy
            | Self::MixedVersions { .. }
            | Self::WrongVersion { .. }
            | Self::ImportsWasi(_)
            | Self::Imports(_)
            | Self::MissingInterfaces(_)
            | Self::TooMany { .. }
            | Self::FunctionTooLarge { .. } => Step::Inspect,
            Self::Compile(_) => Step::Compile,
            Self::Engine(_) | Self::Instantiate(_) => Step::Instantiate,
            Self::Silent(_) | Self::Describe(_) => Step::Describe,
            Self::Settings(_) => Step::Settings,
            Self::BadSample { .. }
            | Self::FailsSample { .. }
            | Self::NotDeterministic { .. }
            | Self::KeepsState { .. }
            | Self::SamplesTooCostly { .. }
            | Self::NoPlan { .. } => Step::Conformance,
        }
    }
}

impl From<AdmitError> for LoadError {
    fn from(error: AdmitError) -> Self {
        match error {
            AdmitError::Failure(failure) => Self::Silent(failure),
            AdmitError::Describe(error) => Self::Describe(error),
        }
    }
}
