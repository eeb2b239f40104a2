//! Simulates a policy on a machine that stalls: for an object with the name `stalls`, the first call of each function
//! returns the failure `Stalled`.

use std::{collections::BTreeSet, sync::Mutex};

use kaos_policy::{
    code::{Code, Native, Sandbox, World},
    contract::{Descriptor, EnvVar, Found, Need, Observation, Plan, Refusal, Report, Subject},
    failure::{Failure, Verb},
    limits::Limits,
};

/// The simulated policy, and those of its functions that have already returned this failure.
pub(crate) struct Stalling(pub(crate) Native, pub(crate) Mutex<BTreeSet<Verb>>);

struct Opened<'a> {
    inner: Box<dyn Sandbox + 'a>,
    stalled: &'a Mutex<BTreeSet<Verb>>,
    is_to_stall: bool,
}

impl Code for Stalling {
    fn world(&self) -> World {
        self.0.world()
    }

    fn open(&self, limits: &Limits) -> Result<Box<dyn Sandbox + '_>, Failure> {
        Ok(Box::new(Opened { inner: self.0.open(limits)?, stalled: &self.1, is_to_stall: false }))
    }
}

impl Opened<'_> {
    fn stall(&self, verb: Verb) -> Result<(), Failure> {
        let stalls = self.is_to_stall && self.stalled.lock().unwrap().insert(verb);
        if stalls { Err(Failure::Stalled { verb, seconds: 180 }) } else { Ok(()) }
    }
}

impl Sandbox for Opened<'_> {
    fn describe(&mut self) -> Result<Descriptor, Failure> {
        self.inner.describe()
    }

    fn begin(&mut self, subject: &Subject) -> Result<(), Failure> {
        self.is_to_stall = subject.object.contains(r#""name":"stalls""#);
        self.inner.begin(subject)
    }

    fn needs(&mut self, found: &[Found]) -> Result<Vec<Need>, Failure> {
        self.stall(Verb::Needs)?;
        self.inner.needs(found)
    }

    fn map_env(&mut self, base: Vec<EnvVar>) -> Result<Result<Vec<EnvVar>, Refusal>, Failure> {
        self.inner.map_env(base)
    }

    fn translate(&mut self, env: Vec<EnvVar>) -> Result<Result<Plan, Refusal>, Failure> {
        self.stall(Verb::Translate)?;
        self.inner.translate(env)
    }

    fn assess(&mut self, seen: &Observation) -> Result<Report, Failure> {
        self.stall(Verb::Assess)?;
        self.inner.assess(seen)
    }

    fn fuel_used(&self) -> u64 {
        self.inner.fuel_used()
    }

    fn memory(&self) -> usize {
        self.inner.memory()
    }
}
