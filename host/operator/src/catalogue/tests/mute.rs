//! A policy with a name and without any behaviour.

use kaos_policy::{
    code::{Code, Sandbox, World},
    contract::{Claim, Descriptor, EnvVar, Found, Need, Observation, Plan, Refusal, Report, Sample, Subject},
    failure::{Failure, Verb},
    limits::Limits,
};
use serde_json::json;

use super::widget;

/// The name and the world of the policy.
pub(super) struct Mute(pub(super) &'static str, pub(super) World);

impl Code for Mute {
    fn world(&self) -> World {
        self.1
    }

    fn open(&self, _: &Limits) -> Result<Box<dyn Sandbox + '_>, Failure> {
        Ok(Box::new(Self(self.0, self.1)))
    }
}

fn nothing<T>(verb: Verb) -> Result<T, Failure> {
    Err(Failure::Trap { verb, reason: "the policy has no behaviour".to_owned() })
}

impl Sandbox for Mute {
    fn describe(&mut self) -> Result<Descriptor, Failure> {
        let claim = Claim {
            primary: widget(),
            emits: Vec::new(),
            reads: Vec::new(),
            wishes: Vec::new(),
            finalizer: None,
            samples: vec![Sample { name: "one".to_owned(), object: "{}".to_owned(), beside: Vec::new() }],
            extra: "{}".to_owned(),
        };
        Ok(Descriptor {
            name: self.0.to_owned(),
            version: "1.0.0".to_owned(),
            claims: vec![claim],
            settings_schema: json!({"type": "object", "properties": {"size": {"type": "integer", "default": 1}}})
                .to_string(),
            extra: "{}".to_owned(),
        })
    }

    fn begin(&mut self, _: &Subject) -> Result<(), Failure> {
        Ok(())
    }

    fn needs(&mut self, _: &[Found]) -> Result<Vec<Need>, Failure> {
        nothing(Verb::Needs)
    }

    fn map_env(&mut self, _: Vec<EnvVar>) -> Result<Result<Vec<EnvVar>, Refusal>, Failure> {
        nothing(Verb::MapEnv)
    }

    fn translate(&mut self, _: Vec<EnvVar>) -> Result<Result<Plan, Refusal>, Failure> {
        nothing(Verb::Translate)
    }

    fn assess(&mut self, _: &Observation) -> Result<Report, Failure> {
        nothing(Verb::Assess)
    }

    fn fuel_used(&self) -> u64 {
        0
    }

    fn memory(&self) -> usize {
        0
    }
}
