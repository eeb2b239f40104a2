//! A policy compiled into this process, without sandbox and limits. For tests and benches.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Code, Sandbox, World};
use crate::{
    contract::{Descriptor, EnvVar, Need, Observation, Plan, Refusal, Report, Subject},
    failure::{Failure, Verb},
    limits::Limits,
};

/// The five functions of a policy. [`crate::native_code!`] makes it from a type of the guest SDK.
#[derive(Clone, Copy)]
pub struct Native {
    /// `meta.describe`
    pub describe: fn() -> Descriptor,
    /// `inputs.needs`
    pub needs: fn(&Subject) -> Vec<Need>,
    /// `environment.map-env`
    pub map_env: fn(&Subject, Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal>,
    /// `translation.translate`
    pub translate: fn(&Subject, Vec<EnvVar>) -> Result<Plan, Refusal>,
    /// `status.assess`
    pub assess: fn(&Subject, &Observation) -> Report,
}

impl Code for Native {
    fn world(&self) -> World {
        World::Policy
    }

    fn open(&self, _: &Limits) -> Result<Box<dyn Sandbox + '_>, Failure> {
        Ok(Box::new(*self))
    }
}

impl Sandbox for Native {
    fn describe(&mut self) -> Result<Descriptor, Failure> {
        caught(Verb::Describe, self.describe)
    }

    fn needs(&mut self, subject: &Subject) -> Result<Vec<Need>, Failure> {
        caught(Verb::Needs, || (self.needs)(subject))
    }

    fn map_env(&mut self, subject: &Subject, base: Vec<EnvVar>) -> Result<Result<Vec<EnvVar>, Refusal>, Failure> {
        caught(Verb::MapEnv, || (self.map_env)(subject, base))
    }

    fn translate(&mut self, subject: &Subject, env: Vec<EnvVar>) -> Result<Result<Plan, Refusal>, Failure> {
        caught(Verb::Translate, || (self.translate)(subject, env))
    }

    fn assess(&mut self, subject: &Subject, seen: &Observation) -> Result<Report, Failure> {
        caught(Verb::Assess, || (self.assess)(subject, seen))
    }

    fn fuel_used(&self) -> u64 {
        0
    }

    fn memory(&self) -> usize {
        0
    }
}

/// Turns a panic into a failure, like a trap of a component.
fn caught<T>(verb: Verb, call: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
        let reason = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
            .unwrap_or_else(|| "panicked".to_owned());
        Failure::Trap { verb, reason }
    })
}
