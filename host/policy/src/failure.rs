//! How a policy can fail to answer. A refusal is an answer and not in here.

use std::fmt;

use crate::{
    guard::Breach,
    units::{bytes, count},
};

/// What was running: one of the five functions of the contract, or the start of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Instantiation, before any function.
    Open,
    /// `meta.describe`
    Describe,
    /// `inputs.needs`
    Needs,
    /// `environment.map-env`
    MapEnv,
    /// `translation.translate`
    Translate,
    /// `status.assess`
    Assess,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "instantiation",
            Self::Describe => "describe",
            Self::Needs => "needs",
            Self::MapEnv => "map-env",
            Self::Translate => "translate",
            Self::Assess => "assess",
        })
    }
}

impl Verb {
    /// What it is for, for people who do not know the contract.
    fn purpose(self) -> &'static str {
        match self {
            Self::Open => "to start",
            Self::Describe => "to say what it is",
            Self::Needs => "to say which objects it needs",
            Self::MapEnv => "to work out the environment variables",
            Self::Translate => "to work out the manifests",
            Self::Assess => "to work out the status",
        }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The code stopped itself: a panic, an access outside its memory, too deep a recursion.
    #[error("{verb} trapped: {reason}")]
    Trap {
        /// The function that was running.
        verb: Verb,
        /// What stopped it.
        reason: String,
    },
    /// The pass took more instructions than it may.
    #[error("{verb} ran out of fuel: {} it takes more than the {} units that a pass has", verb.purpose(), count(limit))]
    OutOfFuel {
        /// The function that was running.
        verb: Verb,
        /// Fuel of a pass.
        limit: u64,
    },
    /// The pass asked for more memory than it may have.
    #[error("{verb} ran out of memory: {} it takes {}, and a pass has {}", verb.purpose(), bytes(*wanted), bytes(*limit))]
    OutOfMemory {
        /// The function that was running.
        verb: Verb,
        /// The size that the memory would have had.
        wanted: usize,
        /// The size that it may have.
        limit: usize,
    },
    /// The answer is larger than one call may hand back.
    #[error("the answer of {verb} is larger than {}, the most that is taken", bytes(*limit))]
    AnswerTooLarge {
        /// The function that answered.
        verb: Verb,
        /// Bytes of one answer.
        limit: usize,
    },
    /// A text of the answer is not UTF-8.
    #[error("the answer of {verb} is not UTF-8")]
    NotUtf8 {
        /// The function that answered.
        verb: Verb,
    },
    /// A text of the answer that must be JSON is not.
    #[error("{what} in the answer of {verb} is not JSON: {reason}")]
    NotJson {
        /// The function that answered.
        verb: Verb,
        /// Which part of the answer.
        what: String,
        /// What the parser says.
        reason: String,
    },
    /// The answer does not have the form that the contract gives it: pointers outside the memory,
    /// an unknown case.
    #[error("the answer of {verb} is malformed: {reason}")]
    Malformed {
        /// The function that answered.
        verb: Verb,
        /// What is wrong.
        reason: String,
    },
    /// It got no processor to come to an end: the machine stalled.
    #[error("{verb} did not end within {seconds} s, for lack of a free processor: it is tried again")]
    Stalled {
        /// The function that was running.
        verb: Verb,
        /// How long its sandbox was there.
        seconds: u64,
    },
    /// No sandbox could be made.
    #[error("no sandbox for it: {0}")]
    Sandbox(String),
    /// The policy goes on asking.
    #[error("needs asked for something new {limit} times in a row")]
    TooManyRounds {
        /// How often it may.
        limit: usize,
    },
    /// The guard stopped the answer.
    #[error("the guard stopped it: {}", list(.0))]
    Guard(Vec<Breach>),
    /// The policy is an overlay and was asked what only a policy answers.
    #[error("{verb} is not a function of an environment overlay")]
    NotOfThisWorld {
        /// The function that was asked for.
        verb: Verb,
    },
}

impl Failure {
    /// What [`category`](Self::category) can be.
    pub const CATEGORIES: [&'static str; 12] = [
        "Trap",
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

    /// Whether it would be the same for any object and any policy: no sandbox is free, or no processor.
    pub fn says_nothing_of_the_object(&self) -> bool {
        matches!(self, Self::Sandbox(_) | Self::Stalled { .. })
    }

    /// Whether a pass has too little room for it: less to read would take less.
    pub(crate) fn is_of_size(&self) -> bool {
        matches!(self, Self::OutOfFuel { .. } | Self::OutOfMemory { .. } | Self::AnswerTooLarge { .. })
    }

    /// A stable word for metrics, Events and conditions.
    pub fn category(&self) -> &'static str {
        match self {
            Self::Trap { .. } => "Trap",
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

fn list(breaches: &[Breach]) -> String {
    breaches.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_told_in_units_and_with_what_they_were_not_enough_for() {
        let fuel = Failure::OutOfFuel { verb: Verb::Translate, limit: 500_000_000 };
        let told = "translate ran out of fuel: to work out the manifests it takes more than the 500,000,000 units that a \
                    pass has";
        assert_eq!(fuel.to_string(), told);
        let memory = Failure::OutOfMemory { verb: Verb::MapEnv, wanted: 38_076_416, limit: 32 << 20 };
        let told = "map-env ran out of memory: to work out the environment variables it takes 36.4 MiB, and a pass has 32 \
                    MiB";
        assert_eq!(memory.to_string(), told);
        let answer = Failure::AnswerTooLarge { verb: Verb::Assess, limit: 8 << 20 };
        assert_eq!(answer.to_string(), "the answer of assess is larger than 8 MiB, the most that is taken");
    }

    #[test]
    fn every_category_is_listed() {
        let verb = Verb::Translate;
        let (what, reason) = (String::new(), String::new());
        let all = [
            Failure::Trap { verb, reason: reason.clone() },
            Failure::OutOfFuel { verb, limit: 1 },
            Failure::OutOfMemory { verb, wanted: 2, limit: 1 },
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
