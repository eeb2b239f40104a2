//! Measures the memory of a policy's sandboxes.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use kaos_policy::{
    code::{Code, Sandbox, World},
    contract::{Descriptor, EnvVar, Found, Need, Observation, Plan, Refusal, Report, Subject},
    digest::Digest,
    failure::Failure,
    limits::Limits,
    policy::Policy,
};

/// Wraps the code of a policy, and records the memory of the largest sandbox.
pub(super) struct Measured {
    policy: Arc<Policy>,
    most: AtomicUsize,
}

impl Measured {
    pub(super) fn new(policy: &Arc<Policy>) -> Self {
        Self { policy: Arc::clone(policy), most: AtomicUsize::new(0) }
    }

    /// Returns the memory of the largest sandbox since the last call, in bytes.
    pub(super) fn take(&self) -> usize {
        self.most.swap(0, Ordering::Relaxed)
    }
}

impl Code for Measured {
    fn world(&self) -> World {
        self.policy.code().world()
    }

    fn bytes(&self) -> usize {
        self.policy.code().bytes()
    }

    fn script_engine(&self) -> Option<Digest> {
        self.policy.code().script_engine()
    }

    fn open(&self, limits: &Limits) -> Result<Box<dyn Sandbox + '_>, Failure> {
        let inner = self.policy.code().open(limits)?;
        Ok(Box::new(MeasuredSandbox { inner, most: &self.most }))
    }
}

/// Wraps a sandbox, and records the sandbox's memory when the host drops it.
struct MeasuredSandbox<'a> {
    inner: Box<dyn Sandbox + 'a>,
    most: &'a AtomicUsize,
}

impl Drop for MeasuredSandbox<'_> {
    fn drop(&mut self) {
        self.most.fetch_max(self.inner.memory(), Ordering::Relaxed);
    }
}

impl Sandbox for MeasuredSandbox<'_> {
    fn describe(&mut self) -> Result<Descriptor, Failure> {
        self.inner.describe()
    }

    fn begin(&mut self, subject: &Subject) -> Result<(), Failure> {
        self.inner.begin(subject)
    }

    fn needs(&mut self, found: &[Found]) -> Result<Vec<Need>, Failure> {
        self.inner.needs(found)
    }

    fn map_env(&mut self, base: Vec<EnvVar>) -> Result<Result<Vec<EnvVar>, Refusal>, Failure> {
        self.inner.map_env(base)
    }

    fn translate(&mut self, env: Vec<EnvVar>) -> Result<Result<Plan, Refusal>, Failure> {
        self.inner.translate(env)
    }

    fn amend(&mut self, below: Plan) -> Result<Result<Plan, Refusal>, Failure> {
        self.inner.amend(below)
    }

    fn assess(&mut self, seen: &Observation) -> Result<Report, Failure> {
        self.inner.assess(seen)
    }

    fn fuel_used(&self) -> u64 {
        self.inner.fuel_used()
    }

    fn memory(&self) -> usize {
        self.inner.memory()
    }
}
