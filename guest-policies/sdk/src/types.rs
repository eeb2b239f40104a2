//! The records and variants of the contract. `wit/policy.wit` declares and explains these types.
//!
//! If the name of a field is a keyword of Rust, the field ends in `_` here: the contract's `type` of a condition is
//! [`Condition::type_`].

pub use crate::bindings::policy::kaos::policy::types::{
    Answer, Blocker, Child, Claim, Cluster, Condition, Descriptor, EnvSource, EnvVar, Found, Json, KeySelector, Need,
    Note, Observation, Origin, Outcome, Plan, Reference, Refusal, Report, ResourceType, Sample, SecretFacts, Selector,
    Severity, Target, Truth, Violation,
};
pub use crate::kept::Subject;
