//! The errors of the gate: one variant for each kind of defect in a candidate.

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

/// A reason why the gate refuses a candidate.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LoadError {
    /// The number of bytes is above the limit.
    #[error(
        "the component has {bytes} bytes, but the limit is {limit}: strip debug information and build with opt-level \
         s, or start the operator with --large-policies if the policy contains an interpreter"
    )]
    TooLarge {
        /// The number of bytes.
        bytes: usize,
        /// The maximum number of bytes.
        limit: usize,
    },
    /// The unpacked bytes are above the limit.
    #[error(
        "the component unpacks to more than {limit} bytes: make it smaller, or start the operator with --large-policies"
    )]
    UnpacksTooLarge {
        /// The maximum number of bytes.
        limit: usize,
    },
    /// The bytes begin like gzip but are damaged.
    #[error("the component is gzipped, but damaged: {0}")]
    BadGzip(String),
    /// The digest differs from the pinned digest.
    #[error("the component's digest is {found}, but policy.yaml pins {wanted}: correct `sha256` in policy.yaml")]
    WrongDigest {
        /// The digest of the component.
        found: Digest,
        /// The pinned digest.
        wanted: Digest,
    },
    /// The bytes are not a component that implements this contract, or the component exceeds a bound.
    #[error(transparent)]
    Inspect(#[from] InspectError),
    /// The component does not compile.
    #[error(transparent)]
    Compile(CompileError),
    /// The component's exports do not have the types of the contract, or the code does not load.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The component cannot be instantiated.
    #[error("the component cannot be started: {0}")]
    Instantiate(Failure),
    /// The script is not valid JavaScript, or fails while it loads. The text has the line, the column and the remedy.
    #[error("{0}")]
    Script(String),
    /// The policy fails when the host asks for its description.
    #[error("the policy cannot describe itself: {0}")]
    Silent(Failure),
    /// The component's description is invalid.
    #[error(transparent)]
    Describe(#[from] DescribeError),
    /// The package's settings do not fit the policy's schema.
    #[error(transparent)]
    Settings(#[from] SettingsErrors),
    /// A sample is not an object of the claimed kind.
    #[error("sample {sample} of {kind} is invalid: {reason}")]
    BadSample {
        /// The claimed kind.
        kind: String,
        /// The sample's name.
        sample: String,
        /// The problem.
        reason: String,
    },
    /// The policy fails on a sample.
    #[error("sample {sample} of {kind}: {failure}")]
    FailsSample {
        /// The claimed kind.
        kind: String,
        /// The sample's name.
        sample: String,
        /// The failure.
        failure: Failure,
    },
    /// The policy fails on a sample, perhaps only because the plan has a field of a newer API server. The gate cannot
    /// find out, because the API server did not report its version.
    #[error("{error}; a newer API server may accept this, but the version of this API server is unknown: {why}")]
    Unanswered {
        /// The failure.
        error: Box<LoadError>,
        /// The reason why the version is unknown.
        why: String,
    },
    /// The policy gives different answers in two passes with the same input.
    #[error(
        "sample {sample} of {kind}: two passes with the same input differ in their {what}; the policy must give equal \
         answers to equal inputs"
    )]
    NotDeterministic {
        /// The claimed kind.
        kind: String,
        /// The sample's name.
        sample: String,
        /// The part of the answers that differs.
        what: &'static str,
    },
    /// An answer depends on earlier calls in the same sandbox.
    #[error(
        "sample {sample} of {kind}: {verb} answers differently if the host calls it again in the same sandbox: \
        keep no state"
    )]
    KeepsState {
        /// The claimed kind.
        kind: String,
        /// The sample's name.
        sample: String,
        /// The function that answers differently.
        verb: crate::failure::Verb,
    },
    /// The samples together take too much fuel.
    #[error(
        "the samples before {before} used up the fuel for all samples, {allowed} units: use fewer or smaller samples, \
         with fewer settings in annotations"
    )]
    SamplesTooCostly {
        /// The maximum fuel of all samples together.
        allowed: u64,
        /// The first sample that the gate did not evaluate.
        before: String,
    },
    /// The policy returns no plan for any sample of a claim.
    #[error("no sample of {kind} ends in a plan; the policy refused the last sample: {}", cut(&Refused::of(refusal).to_string(), NOTE))]
    NoPlan {
        /// The claimed kind.
        kind: String,
        /// The policy's refusal of the last sample.
        refusal: Refusal,
    },
}

impl LoadError {
    /// Returns the gate's error for a policy whose sandbox the host cannot open.
    pub(super) fn of_start(failure: Failure) -> Self {
        match failure {
            Failure::Script { reason, .. } => Self::Script(reason),
            failure => Self::Instantiate(failure),
        }
    }

    /// Returns the reason in one word.
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
            Self::Script(_) => "BadScript",
            Self::Silent(_) => "DoesNotDescribeItself",
            Self::Describe(_) => "BadDescription",
            Self::Settings(_) => "BadSettings",
            Self::BadSample { .. } => "BadSample",
            Self::FailsSample { .. } => "FailsSample",
            Self::Unanswered { .. } => "ServerDoesNotAnswer",
            Self::NotDeterministic { .. } => "NotDeterministic",
            Self::KeepsState { .. } => "KeepsState",
            Self::SamplesTooCostly { .. } => "SamplesTooCostly",
            Self::NoPlan { .. } => "NoPlan",
        }
    }

    /// Returns whether another check of the same bytes would always end with this error.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Compile(error) => error.is_lasting(),
            Self::Unanswered { .. } => false,
            // Whether the exports fit the world depends only on the bytes. All other errors of the engine depend on
            // this machine.
            Self::Engine(error) => matches!(error, EngineError::World { .. }),
            Self::Instantiate(failure) | Self::Silent(failure) | Self::FailsSample { failure, .. } => {
                !failure.says_nothing_of_the_object()
            }
            _ => true,
        }
    }

    /// Returns the step of the gate that found the error.
    pub fn step(&self) -> Step {
        match self {
            Self::TooLarge { .. } => Step::Size,
            Self::UnpacksTooLarge { .. } | Self::BadGzip(_) => Step::Decompress,
            Self::WrongDigest { .. } => Step::Digest,
            Self::Inspect(_) => Step::Inspect,
            Self::Compile(_) => Step::Compile,
            Self::Engine(_) | Self::Instantiate(_) | Self::Script(_) => Step::Instantiate,
            Self::Silent(_) | Self::Describe(_) => Step::Describe,
            Self::Settings(_) => Step::Settings,
            Self::BadSample { .. }
            | Self::FailsSample { .. }
            | Self::Unanswered { .. }
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
