//! Code that implements the contract.
//!
//! The code is either a component in a sandbox ([`crate::engine`]), or functions of this process ([`Native`]). Tests
//! and benches run the same pass with either form.

use crate::{
    contract::{Descriptor, EnvVar, Found, Need, Observation, Plan, Refusal, Report, Subject},
    digest::Digest,
    failure::{Failure, Verb},
    limits::Limits,
};

mod native;

pub use native::Native;

/// The world of the contract that a component implements: the set of functions that the component exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum World {
    /// A policy that is not an overlay.
    Policy,
    /// An overlay, which changes the mapping and the plans of the policy below it.
    Overlay,
}

impl World {
    /// The world's name in the contract.
    pub fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Overlay => "overlay",
        }
    }
}

/// The code of a policy, from which the host opens sandboxes.
pub trait Code: Send + Sync {
    /// The world that the code exports.
    fn world(&self) -> World;
    /// Returns the number of bytes of compiled code in memory. Returns 0 for functions of this process.
    fn bytes(&self) -> usize {
        0
    }
    /// Returns the number of bytes of compiled code that this code shares with other policies: the code of the script
    /// engine.
    fn shared_bytes(&self) -> usize {
        0
    }
    /// Returns the digest of the script engine that runs the code. `None` for components and for functions of this
    /// process.
    fn script_engine(&self) -> Option<Digest> {
        None
    }
    /// Asks the policy to check settings for errors that the schema does not find. Returns `None` if the policy lacks
    /// this optional interface.
    #[cfg(test)]
    fn validate(&self, settings: &str, limits: &Limits) -> Option<Result<Vec<crate::contract::Violation>, Failure>> {
        let _ = (settings, limits);
        None
    }
    /// Opens a fresh sandbox, which shares nothing with other sandboxes.
    fn open(&self, limits: &Limits) -> Result<Box<dyn Sandbox + '_>, Failure>;
}

/// One instance of a policy, for one pass.
pub trait Sandbox {
    /// Asks the policy for its description.
    fn describe(&mut self) -> Result<Descriptor, Failure>;
    /// Begins the pass over an object. All later calls concern this object.
    fn begin(&mut self, subject: &Subject) -> Result<(), Failure>;
    /// Adds found objects to the subject, and asks the policy for its needs.
    fn needs(&mut self, found: &[Found]) -> Result<Vec<Need>, Failure>;
    /// Asks the policy for its mapping of environment variables. `base` is the mapping of the layer below.
    fn map_env(&mut self, base: Vec<EnvVar>) -> Result<Result<Vec<EnvVar>, Refusal>, Failure>;
    /// Asks the policy for its plan.
    fn translate(&mut self, env: Vec<EnvVar>) -> Result<Result<Plan, Refusal>, Failure>;
    /// Asks an overlay to amend the plan of the layer below. Only overlays have this function.
    fn amend(&mut self, below: Plan) -> Result<Result<Plan, Refusal>, Failure> {
        drop(below);
        Err(Failure::NotOfThisWorld { verb: Verb::Amend })
    }
    /// Asks the policy to assess the live children.
    fn assess(&mut self, seen: &Observation) -> Result<Report, Failure>;
    /// The fuel used since the sandbox was opened.
    fn fuel_used(&self) -> u64;
    /// The bytes of linear memory in use.
    fn memory(&self) -> usize;
}
