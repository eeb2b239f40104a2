//! The policy below an overlay while the gate evaluates the overlay's samples. This policy needs no objects, and its
//! plans are empty.

use std::sync::Arc;

use crate::{
    code::{Code, Sandbox, World},
    contract::{Claim, Descriptor, EnvVar, Found, Need, Observation, Plan, Refusal, Report, Subject},
    describe::DescribeError,
    digest::Digest,
    failure::Failure,
    limits::Limits,
    policy::Policy,
};

/// Claims one kind and answers with empty plans.
#[derive(Clone)]
pub(super) struct Beneath(Claim);

impl Beneath {
    pub(super) fn policy(claim: &Claim) -> Result<Policy, DescribeError> {
        let claim = Claim { emits: Vec::new(), reads: Vec::new(), wishes: Vec::new(), ..claim.clone() };
        Policy::trusted(Arc::new(Self(claim.clone())), Self(claim).descriptor(), Digest::of(b""))
    }

    fn descriptor(&self) -> Descriptor {
        Descriptor {
            // No other policy can have this name, because names of policies contain no parentheses.
            name: "(beneath)".to_owned(),
            version: "0.0.0".to_owned(),
            claims: vec![self.0.clone()],
            settings_schema: "{}".to_owned(),
            extra: "{}".to_owned(),
        }
    }
}

impl Code for Beneath {
    fn world(&self) -> World {
        World::Policy
    }

    fn open(&self, _: &Limits) -> Result<Box<dyn Sandbox + '_>, Failure> {
        Ok(Box::new(self.clone()))
    }
}

impl Sandbox for Beneath {
    fn describe(&mut self) -> Result<Descriptor, Failure> {
        Ok(self.descriptor())
    }

    fn begin(&mut self, _: &Subject) -> Result<(), Failure> {
        Ok(())
    }

    fn needs(&mut self, _: &[Found]) -> Result<Vec<Need>, Failure> {
        Ok(Vec::new())
    }

    fn map_env(&mut self, base: Vec<EnvVar>) -> Result<Result<Vec<EnvVar>, Refusal>, Failure> {
        Ok(Ok(base))
    }

    /// Drops the mapping: an empty plan has no pod for the variables.
    fn translate(&mut self, _: Vec<EnvVar>) -> Result<Result<Plan, Refusal>, Failure> {
        let extra = "{}".to_owned();
        Ok(Ok(Plan {
            manifests: Vec::new(),
            gates: Vec::new(),
            env: Vec::new(),
            notes: Vec::new(),
            finalizer: None,
            kept: Vec::new(),
            gates_hold: false,
            origins: Vec::new(),
            extra,
        }))
    }

    fn assess(&mut self, _: &Observation) -> Result<Report, Failure> {
        let text = String::new;
        Ok(Report {
            ready: false,
            phase: text(),
            message: text(),
            fields: "{}".to_owned(),
            conditions: Vec::new(),
            extra: "{}".to_owned(),
        })
    }

    fn fuel_used(&self) -> u64 {
        0
    }

    fn memory(&self) -> usize {
        0
    }
}
