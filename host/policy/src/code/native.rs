//! A policy that is compiled into this process, without sandbox and limits, for tests and benches.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Code, Sandbox, World};
use crate::{
    contract::{Descriptor, EnvVar, Found, Need, Observation, Plan, Refusal, Report, Subject},
    failure::{Failure, Verb},
    limits::Limits,
};

/// The functions of a policy. [`crate::native_code!`] creates this struct from a type that implements the guest SDK's
/// `Policy`.
#[derive(Clone, Copy)]
pub struct Native {
    /// `meta.describe`
    pub describe: fn() -> Descriptor,
    /// `pass.needs`
    pub needs: fn(&Subject) -> Vec<Need>,
    /// `pass.map-env`
    pub map_env: fn(&Subject, Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal>,
    /// `pass.translate`
    pub translate: fn(&Subject, Vec<EnvVar>) -> Result<Plan, Refusal>,
    /// `pass.assess`
    pub assess: fn(&Subject, &Observation) -> Report,
}

impl Code for Native {
    fn world(&self) -> World {
        World::Policy
    }

    fn open(&self, _: &Limits) -> Result<Box<dyn Sandbox + '_>, Failure> {
        Ok(Box::new(Opened { code: *self, subject: None }))
    }
}

struct Opened {
    code: Native,
    /// The subject of the pass.
    subject: Option<Subject>,
}

impl Opened {
    fn subject(&self) -> Result<&Subject, Failure> {
        self.subject.as_ref().ok_or_else(Failure::no_pass)
    }
}

impl Sandbox for Opened {
    fn describe(&mut self) -> Result<Descriptor, Failure> {
        caught(Verb::Describe, self.code.describe)
    }

    fn begin(&mut self, subject: &Subject) -> Result<(), Failure> {
        self.subject = Some(subject.clone());
        Ok(())
    }

    fn needs(&mut self, found: &[Found]) -> Result<Vec<Need>, Failure> {
        let subject = self.subject.as_mut().ok_or_else(Failure::no_pass)?;
        subject.add(found);
        caught(Verb::Needs, || (self.code.needs)(subject))
    }

    fn map_env(&mut self, base: Vec<EnvVar>) -> Result<Result<Vec<EnvVar>, Refusal>, Failure> {
        let subject = self.subject()?;
        caught(Verb::MapEnv, || (self.code.map_env)(subject, base))
    }

    fn translate(&mut self, env: Vec<EnvVar>) -> Result<Result<Plan, Refusal>, Failure> {
        let subject = self.subject()?;
        caught(Verb::Translate, || (self.code.translate)(subject, env))
    }

    fn assess(&mut self, seen: &Observation) -> Result<Report, Failure> {
        let subject = self.subject()?;
        caught(Verb::Assess, || (self.code.assess)(subject, seen))
    }

    fn fuel_used(&self) -> u64 {
        0
    }

    fn memory(&self) -> usize {
        0
    }
}

/// Converts a panic to a failure, as the engine does with a trap of a component.
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
