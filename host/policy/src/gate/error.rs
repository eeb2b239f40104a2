//! One error for each way in which a component can be wrong.

use super::{InspectError, Step};
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
    /// They are no component of this contract, or have too much of something.
    #[error(transparent)]
    Inspect(#[from] InspectError),
    /// It does not compile.
    #[error(transparent)]
    Compile(CompileError),
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
            Self::Inspect(error) => error.reason(),
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
            Self::Instantiate(failure) | Self::Silent(failure) | Self::FailsSample { failure, .. } => {
                !failure.says_nothing_of_the_object()
            }
            _ => true,
        }
    }

    /// The step that found it.
    pub fn step(&self) -> Step {
        match self {
            Self::TooLarge { .. } => Step::Size,
            Self::UnpacksTooLarge { .. } | Self::BadGzip(_) => Step::Decompress,
            Self::WrongDigest { .. } => Step::Digest,
            Self::Inspect(_) => Step::Inspect,
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

impl From<CompileError> for LoadError {
    fn from(error: CompileError) -> Self {
        match error {
            CompileError::Inspect(error) => Self::Inspect(error),
            error => Self::Compile(error),
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
