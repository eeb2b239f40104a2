//! The contract in the host's types. Each record of `wit/policy.wit` has one plain struct.
//!
//! The structs follow the newest version of the contract. An adapter (`crate::adapter`) converts from and to each
//! released version, so no other code in the host depends on a version. In these structs, Kubernetes objects are JSON
//! text, because policies receive and return objects as text.

mod answers;
mod questions;

pub use answers::{
    Blocker, Child, Condition, EnvSource, EnvVar, KeySelector, Note, Observation, Origin, Outcome, Plan, Refusal,
    Report, Severity, Truth, Violation,
};
pub use kaos_objects::{Fields, Followed, Reference, ResourceType, Scopes, SecretFacts, Selector, Target};
pub use questions::{Answer, Claim, Cluster, Descriptor, Found, HOME, Need, Sample, Subject};

/// The version of the contract that scripts use, and that this host serves.
pub const VERSION: &str = "0.1.0";

/// JSON text with sorted keys.
pub type Json = String;
