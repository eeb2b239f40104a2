//! Simulates a policy on a machine that stalls: for an object with the name `stalls`, the first call of each function
//! fails as stalled.

use std::{collections::BTreeSet, sync::Mutex};

use kaos_policy::{
    code::{Code, Native, Sandbox, World},
    contract::{Descriptor, EnvVar, Need, Observation, Plan, Refusal, Report, Subject},
    failure::{Failure, Verb},
    limits::Limits,
};

/// The policy, and the functions that have stalled already.
pub(crate) struct Stalling(pub(crate) Native, pub(crate) Mutex<BTreeSet<Verb>>);

struct Opened<'a>(Box<dyn Sandbox + 'a>, &'a Mutex<BTreeSet<Verb>>);

impl Code for Stalling {
    fn world(&self) -> World {
        self.0.world()
    }

    fn open(&self, limits: &Limits) -> Result<Box<dyn Sandbox + '_>, Failure> {
        Ok(Box::new(Opened(self.0.open(limits)?, &self.1)))
    }
}

impl Opened<'_> {
    fn stall(&self, verb: Verb, subject: &Subject) -> Result<(), Failure> {
        let stalls = subject.object.contains(r#""name":"stalls""#) && self.1.lock().unwrap().insert(verb);
        if stalls { Err(Failure::Stalled { verb, seconds: 180 }) } else { Ok(()) }
    }
}

impl Sandbox for Opened<'_> {
    fn describe(&mut self) -> Result<Descriptor, Failure> {
        self.0.describe()
    }

    fn needs(&mut self, subject: &Subject) -> Result<Vec<Need>, Failure> {
        self.stall(Verb::Needs, subject)?;
        self.0.needs(subject)
    }

    fn map_env(&mut self, subject: &Subject, base: Vec<EnvVar>) -> Result<Result<Vec<EnvVar>, Refusal>, Failure> {
        self.0.map_env(subject, base)
    }

    fn translate(&mut self, subject: &Subject, env: Vec<EnvVar>) -> Result<Result<Plan, Refusal>, Failure> {
        self.stall(Verb::Translate, subject)?;
        self.0.translate(subject, env)
    }

    fn assess(&mut self, subject: &Subject, seen: &Observation) -> Result<Report, Failure> {
        self.stall(Verb::Assess, subject)?;
        self.0.assess(subject, seen)
    }

    fn fuel_used(&self) -> u64 {
        self.0.fuel_used()
    }

    fn memory(&self) -> usize {
        self.0.memory()
    }
}
