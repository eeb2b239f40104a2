//! The inputs of the checks.

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
    /// Settings that are allowed to have no effect.
    pub without_effect: &'a [Path],
    /// The facts about the cluster.
    pub cluster: &'a Cluster,
    /// The CRDs, which contain the schemas of kinds.
    pub crds: &'a KnownCrds,
    /// Objects from the user's files. The policy answers for the objects of its claimed kinds. The policy's needs can
    /// find all other objects.
    pub files: &'a [Document],
    /// The number of random objects.
    pub objects: u64,
    /// The seed of the random objects.
    pub seed: u64,
    /// If set, the checks use only the object with this number.
    pub only: Option<u64>,
}
