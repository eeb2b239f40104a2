//! The contract as the host sees it: plain structs, one for each record of `wit/policy.wit`.
//!
//! These follow the newest version of the contract. Code that was built against any released version is
//! translated into them by its adapter (`crate::adapter`), so that nothing else in the host knows versions.
//! Bodies of Kubernetes objects are JSON text here, exactly as they cross the boundary.

mod answers;
mod questions;

pub use answers::{
    Blocker, Child, Condition, EnvSource, EnvVar, KeySelector, Note, Observation, Outcome, Plan, Refusal, Report,
    Severity, Truth, Violation,
};
pub use questions::{
    Answer, Claim, Cluster, Descriptor, Found, HOME, Need, Reference, ResourceType, Sample, SecretFacts, Selector,
    Subject, Target,
};

/// JSON text with sorted keys.
pub type Json = String;
