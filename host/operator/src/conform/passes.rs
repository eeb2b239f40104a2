//! Passes over the fixed objects, for measurements.

use std::sync::Arc;

use kaos_policy::{contract::Cluster, policy::Policy, settings::Layer};

use super::{cases::Cases, error::ConformError, exam::Exam};
use crate::{input::Document, schema::KnownCrds};

/// Passes over the samples of a policy and over objects from files.
pub struct Passes<'a> {
    exam: Exam<'a>,
    cases: Cases<'a>,
}

impl<'a> Passes<'a> {
    /// Prepares the passes.
    pub fn new(
        policy: &'a Arc<Policy>,
        settings: &[Layer],
        cluster: &Cluster,
        crds: &'a KnownCrds,
        files: &[Document],
    ) -> Result<Self, ConformError> {
        Ok(Self { exam: Exam::new(policy, settings, cluster, crds)?, cases: Cases::new(policy, crds, files, 0) })
    }

    /// Returns the number of objects.
    pub fn count(&self) -> usize {
        self.cases.fixed().len()
    }

    /// Runs one pass in new sandboxes, and returns its fuel. Returns 0 if no object has this number.
    pub fn run(&self, number: usize) -> Result<u64, ConformError> {
        self.cases.fixed().get(number).map_or(Ok(0), |case| Ok(self.exam.render(case)?.fuel))
    }
}
