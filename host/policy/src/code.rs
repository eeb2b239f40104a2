//! Code that answers the contract, whatever it was compiled to.
//!
//! A component in its sandbox is one kind of it ([`crate::engine`]), functions of this very process are the
//! other ([`Native`]): tests and benches drive both through the same pass.

use crate::{
    contract::{Descriptor, EnvVar, Need, Observation, Plan, Refusal, Report, Subject},
    failure::Failure,
    limits::Limits,
};

mod native;

pub use native::Native;

/// Which functions a component exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum World {
    /// All five: a whole translation.
    Policy,
    /// Three: changes the env mapping of a kind.
    EnvironmentOverlay,
}

impl World {
    /// The name that the contract gives it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::EnvironmentOverlay => "environment-overlay",
        }
    }
}

/// Something that sandboxes can be made of.
pub trait Code: Send + Sync {
    /// What it exports.
    fn world(&self) -> World;
    /// A fresh sandbox, with nothing in it from any other.
    fn open(&self, limits: &Limits) -> Result<Box<dyn Sandbox + '_>, Failure>;
}

/// One instance, alive for one pass.
pub trait Sandbox {
    /// What the policy is.
    fn describe(&mut self) -> Result<Descriptor, Failure>;
    /// Which objects it must see.
    fn needs(&mut self, subject: &Subject) -> Result<Vec<Need>, Failure>;
    /// The env-var mapping on top of that of the layer below.
    fn map_env(&mut self, subject: &Subject, base: Vec<EnvVar>) -> Result<Result<Vec<EnvVar>, Refusal>, Failure>;
    /// The manifests.
    fn translate(&mut self, subject: &Subject, env: Vec<EnvVar>) -> Result<Result<Plan, Refusal>, Failure>;
    /// What to tell the user.
    fn assess(&mut self, subject: &Subject, seen: &Observation) -> Result<Report, Failure>;
    /// Fuel since it was opened.
    fn fuel_used(&self) -> u64;
    /// Bytes of linear memory that it has now.
    fn memory(&self) -> usize;
}
