//! The ways in which a policy fails to answer. A refusal is an answer and not a failure.

use std::fmt;

use crate::{
    rule::Breach,
    units::{bytes, count},
};

/// A step of a sandbox: its start, or the call of a function of the contract. A failure names the step that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// The instantiation of the component, before the host calls a function.
    Open,
    /// `script.load`
    Load,
    /// `meta.describe`
    Describe,
    /// The constructor of `pass`.
    Begin,
    /// `pass.needs`
    Needs,
    /// `pass.map-env`
    MapEnv,
    /// `pass.translate`
    Translate,
    /// `pass.amend`
    Amend,
    /// `pass.assess`
    Assess,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Verb {
    /// The steps that a sandbox can take in a pass.
    pub const OF_PASS: [Self; 7] =
        [Self::Open, Self::Begin, Self::Needs, Self::MapEnv, Self::Translate, Self::Amend, Self::Assess];

    /// The step's name in messages, metrics and traces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "instantiation",
            Self::Load => "load",
            Self::Describe => "describe",
            Self::Begin => "pass",
            Self::Needs => "needs",
            Self::MapEnv => "map-env",
            Self::Translate => "translate",
            Self::Amend => "amend",
            Self::Assess => "assess",
        }
    }

    /// Returns the purpose of the step, for people who do not know the contract.
    fn purpose(self) -> &'static str {
        match self {
            Self::Open => "to start",
            Self::Load => "to load the script",
            Self::Describe => "to describe itself",
            Self::Begin => "to read the object",
            Self::Needs => "to name its needs",
            Self::MapEnv => "to compute the environment variables",
            Self::Translate => "to compute the manifests",
            Self::Amend => "to change the manifests",
            Self::Assess => "to compute the status",
        }
    }
}

/// A reason why a policy gave no valid answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The code trapped, for example because of a panic, an access outside its memory, or a recursion that is too deep.
    #[error("{verb} trapped: {reason}")]
    Trap {
        /// The function that was running.
        verb: Verb,
        /// The cause of the trap.
        reason: String,
    },
    /// A script threw an error or returned a wrong value. The text has the form `policy.js:LINE:COLUMN: problem:
    /// remedy`.
    #[error("{reason}")]
    Script {
        /// The function that was running.
        verb: Verb,
        /// The line and the column in the script, the problem and the remedy.
        reason: String,
    },
    /// The pass ran out of fuel.
    #[error(
        "{}{verb} ran out of fuel: it takes more than the {} units of a pass {}{}",
        place(at.as_deref()), count(limit), verb.purpose(), remedy(at.as_deref(), "end the loop, or compute less")
    )]
    OutOfFuel {
        /// The function that was running.
        verb: Verb,
        /// The last known line and column in the script: `policy.js:LINE:COLUMN`. `None` for a component.
        at: Option<String>,
        /// The fuel of a pass.
        limit: u64,
    },
    /// The pass asked for too much memory.
    #[error(
        "{}{verb} ran out of memory: it needs {} {}, but a pass has {}{}",
        place(at.as_deref()), bytes(*wanted), verb.purpose(), bytes(*limit),
        remedy(at.as_deref(), "build smaller values, or raise limits.memory in policy.yaml")
    )]
    OutOfMemory {
        /// The function that was running.
        verb: Verb,
        /// The last known line and column in the script: `policy.js:LINE:COLUMN`. `None` for a component.
        at: Option<String>,
        /// The memory size that the pass asked for.
        wanted: usize,
        /// The maximum size of the memory.
        limit: usize,
    },
    /// The answer of one call is too large.
    #[error("the answer of {verb} is larger than {}, the limit for an answer", bytes(*limit))]
    AnswerTooLarge {
        /// The function that answered.
        verb: Verb,
        /// The maximum size of an answer in bytes.
        limit: usize,
    },
    /// A text in the answer is not UTF-8.
    #[error("the answer of {verb} is not UTF-8")]
    NotUtf8 {
        /// The function that answered.
        verb: Verb,
    },
    /// A text in the answer must be JSON but is not.
    #[error("{what} in the answer of {verb} is not JSON: {reason}")]
    NotJson {
        /// The function that answered.
        verb: Verb,
        /// The part of the answer that is not JSON.
        what: String,
        /// The parser's message.
        reason: String,
    },
    /// The answer does not have the form of the contract: pointers outside the memory, or an unknown case of a variant.
    #[error("the answer of {verb} is malformed: {reason}")]
    Malformed {
        /// The function that answered.
        verb: Verb,
        /// The problem.
        reason: String,
    },
    /// The sandbox got no processor: the machine stalled.
    #[error("{verb} did not end within {seconds} s, since no processor was free: the operator tries again")]
    Stalled {
        /// The function that was running.
        verb: Verb,
        /// The sandbox's lifetime in seconds.
        seconds: u64,
    },
    /// The host could not open a sandbox.
    #[error("cannot open a sandbox: {0}")]
    Sandbox(String),
    /// The policy asks for new needs in every round.
    #[error("the function `needs` named new needs in {limit} successive rounds: name all needs in fewer rounds")]
    TooManyRounds {
        /// The maximum number of rounds.
        limit: usize,
    },
    /// The guard rejected the answer.
    #[error("the guard rejected the answer: {}", list(.0))]
    Guard(Vec<Breach>),
    /// The host called a function that the world of the policy does not have.
    #[error("{verb} is not a function of its world")]
    NotOfThisWorld {
        /// The missing function.
        verb: Verb,
    },
}

impl Failure {
    /// Returns the failure for a call to a sandbox in which the host did not begin a pass.
    pub(crate) fn no_pass() -> Self {
        Self::Sandbox("the host did not begin a pass before this call".to_owned())
    }

    /// All values that [`category`](Self::category) returns.
    pub const CATEGORIES: [&'static str; 13] = [
        "Trap",
        "ScriptError",
        "OutOfFuel",
        "OutOfMemory",
        "AnswerTooLarge",
        "NotUtf8",
        "NotJson",
        "Malformed",
        "Stalled",
        "Sandbox",
        "TooManyRounds",
        "GuardRefused",
        "NotOfThisWorld",
    ];

    /// Returns whether the failure occurred because no sandbox or no processor was free. Neither the object nor the
    /// policy is the cause of such a failure.
    pub fn says_nothing_of_the_object(&self) -> bool {
        matches!(self, Self::Sandbox(_) | Self::Stalled { .. })
    }

    /// Returns whether a limit for fuel, memory or the answer's size caused the failure. With a smaller object, the
    /// policy might stay within the limit.
    pub(crate) fn is_of_size(&self) -> bool {
        matches!(self, Self::OutOfFuel { .. } | Self::OutOfMemory { .. } | Self::AnswerTooLarge { .. })
    }

    /// Returns the kind of the failure as one word, for metrics, Events and conditions. The words never change.
    pub fn category(&self) -> &'static str {
        match self {
            Self::Trap { .. } => "Trap",
            Self::Script { .. } => "ScriptError",
            Self::OutOfFuel { .. } => "OutOfFuel",
            Self::OutOfMemory { .. } => "OutOfMemory",
            Self::AnswerTooLarge { .. } => "AnswerTooLarge",
            Self::NotUtf8 { .. } => "NotUtf8",
            Self::NotJson { .. } => "NotJson",
            Self::Malformed { .. } => "Malformed",
            Self::Stalled { .. } => "Stalled",
            Self::Sandbox(_) => "Sandbox",
            Self::TooManyRounds { .. } => "TooManyRounds",
            Self::Guard(_) => "GuardRefused",
            Self::NotOfThisWorld { .. } => "NotOfThisWorld",
        }
    }
}

/// Returns the place in the script as the beginning of a message, or an empty text if `at` is `None`.
fn place(at: Option<&str>) -> String {
    at.map(|at| format!("{at}: ")).unwrap_or_default()
}

/// Returns the remedy as the end of a message about a script, or an empty text if `at` is `None`.
fn remedy(at: Option<&str>, remedy: &str) -> String {
    at.map(|_| format!(": {remedy}")).unwrap_or_default()
}

fn list(breaches: &[Breach]) -> String {
    breaches.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_reported_in_units_with_the_purpose_that_exceeded_it() {
        let fuel = Failure::OutOfFuel { verb: Verb::Translate, at: None, limit: 500_000_000 };
        let told = "translate ran out of fuel: it takes more than the 500,000,000 units of a pass to compute the \
            manifests";
        assert_eq!(fuel.to_string(), told);
        let memory = Failure::OutOfMemory { verb: Verb::MapEnv, at: None, wanted: 38_076_416, limit: 32 << 20 };
        let told = "map-env ran out of memory: it needs 36.4 MiB to compute the environment variables, but a pass has \
            32 MiB";
        assert_eq!(memory.to_string(), told);
        let answer = Failure::AnswerTooLarge { verb: Verb::Assess, limit: 8 << 20 };
        assert_eq!(answer.to_string(), "the answer of assess is larger than 8 MiB, the limit for an answer");
    }

    #[test]
    fn a_limit_that_a_script_exceeded_is_reported_with_place_and_remedy() {
        let at = || Some("policy.js:3:7".to_owned());
        let fuel = Failure::OutOfFuel { verb: Verb::Translate, at: at(), limit: 500_000_000 };
        let told = "policy.js:3:7: translate ran out of fuel: it takes more than the 500,000,000 units of a pass to \
            compute the manifests: end the loop, or compute less";
        assert_eq!(fuel.to_string(), told);
        let memory = Failure::OutOfMemory { verb: Verb::MapEnv, at: at(), wanted: 38_076_416, limit: 32 << 20 };
        let told = "policy.js:3:7: map-env ran out of memory: it needs 36.4 MiB to compute the environment variables, \
            but a pass has 32 MiB: build smaller values, or raise limits.memory in policy.yaml";
        assert_eq!(memory.to_string(), told);
    }

    #[test]
    fn every_category_is_listed() {
        let verb = Verb::Translate;
        let (what, reason) = (String::new(), String::new());
        let all = [
            Failure::Trap { verb, reason: reason.clone() },
            Failure::Script { verb, reason: reason.clone() },
            Failure::OutOfFuel { verb, at: None, limit: 1 },
            Failure::OutOfMemory { verb, at: None, wanted: 2, limit: 1 },
            Failure::AnswerTooLarge { verb, limit: 1 },
            Failure::NotUtf8 { verb },
            Failure::NotJson { verb, what, reason: reason.clone() },
            Failure::Malformed { verb, reason: reason.clone() },
            Failure::Stalled { verb, seconds: 1 },
            Failure::Sandbox(reason),
            Failure::TooManyRounds { limit: 1 },
            Failure::Guard(Vec::new()),
            Failure::NotOfThisWorld { verb },
        ];
        assert_eq!(all.map(|failure| failure.category()), Failure::CATEGORIES);
    }
}
