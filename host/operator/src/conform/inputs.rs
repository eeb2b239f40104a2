//! What the checks need.

use std::sync::Arc;

use kaos_policy::{
    contract::Cluster,
    policy::Policy,
    settings::{Layer, Path},
};

use crate::{input::Document, schema::KnownCrds};

/// The policy to check, and the objects to check it with.
#[derive(Debug)]
pub struct Inputs<'a> {
    /// The policy, which has passed the gate.
    pub policy: &'a Arc<Policy>,
    /// The settings of all passes.
    pub settings: &'a [Layer],
    /// Settings that need no effect.
    pub without_effect: &'a [Path],
    /// The facts about the cluster.
    pub cluster: &'a Cluster,
    /// The schemas of kinds.
    pub crds: &'a KnownCrds,
    /// Objects of the user. The policy answers for the objects of its kinds. Its needs can find all other objects.
    pub files: &'a [Document],
    /// The number of random objects.
    pub objects: u64,
    /// The seed of the random objects.
    pub seed: u64,
    /// Checks only the object with this number.
    pub only: Option<u64>,
}
