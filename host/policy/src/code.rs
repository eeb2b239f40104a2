//! Code that implements the contract, either as a component or as functions of this process.
//!
//! There are two forms: a component in a sandbox ([`crate::engine`]), and functions of this process ([`Native`]). Tests
//! and benches run both through the same pass.

use crate::{
    contract::{Descriptor, EnvVar, Found, Need, Observation, Plan, Refusal, Report, Subject},
    digest::Digest,
    failure::Failure,
    limits::Limits,
};

mod native;

pub use native::Native;

/// The functions that a component exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum World {
    /// A whole policy.
    Policy,
    /// An overlay, which changes the env mapping of a kind.
    EnvironmentOverlay,
}

impl World {
    /// The world's name in the contract.
    pub fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::EnvironmentOverlay => "environment-overlay",
        }
    }
}

/// Code from which the host opens sandboxes.
pub trait Code: Send + Sync {
    /// The world that the code exports.
    fn world(&self) -> World;
    /// Returns the bytes of compiled code that this code keeps in memory. Returns 0 for functions of this process.
    fn bytes(&self) -> usize {
        0
    }
    /// Returns the digest of the script engine that runs the code. `None` for components and for functions of this
    /// process.
    fn script_engine(&self) -> Option<Digest> {
        None
    }
    /// Opens a fresh sandbox that shares nothing with any other sandbox.
    fn open(&self, limits: &Limits) -> Result<Box<dyn Sandbox + '_>, Failure>;
}

/// One instance of a policy, for one pass.
pub trait Sandbox {
    /// Asks the policy for its description.
    fn describe(&mut self) -> Result<Descriptor, Failure>;
    /// Begins the pass over an object. The functions below ask questions about this object.
    fn begin(&mut self, subject: &Subject) -> Result<(), Failure>;
    /// Adds found objects to the subject, and asks the policy for the objects that it must see.
    fn needs(&mut self, found: &[Found]) -> Result<Vec<Need>, Failure>;
    /// Asks the policy for its env mapping. `base` is the mapping of the layer below.
    fn map_env(&mut self, base: Vec<EnvVar>) -> Result<Result<Vec<EnvVar>, Refusal>, Failure>;
    /// Asks the policy for its plan.
    fn translate(&mut self, env: Vec<EnvVar>) -> Result<Result<Plan, Refusal>, Failure>;
    /// Asks the policy to assess the live children.
    fn assess(&mut self, seen: &Observation) -> Result<Report, Failure>;
    /// The fuel used since the sandbox was opened.
    fn fuel_used(&self) -> u64;
    /// The bytes of linear memory in use.
    fn memory(&self) -> usize;
}
