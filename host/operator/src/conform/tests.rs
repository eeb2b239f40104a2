//! Tests the checks with native code that answers differently in each sandbox. A component cannot do this, because it
//! imports no functions.
#![allow(clippy::unnecessary_wraps, clippy::needless_pass_by_value)]

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use kaos_policy::{
    code::{Code, Sandbox, World},
    contract::{
        Claim, Cluster, Descriptor, EnvSource, EnvVar, Found, Need, Observation, Plan, Refusal, Report, ResourceType,
        Sample, Subject,
    },
    digest::Digest,
    failure::Failure,
    limits::Limits,
    manifest::PolicyFile,
    policy::Policy,
};
use serde_json::json;

use super::{ConformError, Findings, Inputs, check, results::Property};
use crate::schema::KnownCrds;

/// The part of the answer that differs between sandboxes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fickle {
    Nothing,
    Answers,
    Fuel,
    Reports,
    /// All answers are equal, but only the first sandbox opens.
    Closed,
    /// All answers are equal, but the plan lacks a variable that the mapping contains.
    Drops,
}

/// A policy for Widgets that counts its sandboxes.
struct Counting(Fickle, AtomicU64);

struct Opened(Fickle, u64);

impl Opened {
    /// Returns the number of this sandbox if the part `of` differs between sandboxes, and 1 otherwise.
    fn count(&self, of: Fickle) -> u64 {
        if self.0 == of { self.1 } else { 1 }
    }
}

impl Code for Counting {
    fn world(&self) -> World {
        World::Policy
    }

    fn open(&self, _: &Limits) -> Result<Box<dyn Sandbox + '_>, Failure> {
        let count = self.1.fetch_add(1, Ordering::Relaxed);
        if self.0 == Fickle::Closed && count > 0 {
            return Err(Failure::Sandbox("no memory".to_owned()));
        }
        Ok(Box::new(Opened(self.0, count)))
    }
}

impl Sandbox for Opened {
    fn describe(&mut self) -> Result<Descriptor, Failure> {
        let object = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {}});
        let sample = Sample { name: "one".to_owned(), object: object.to_string(), beside: Vec::new() };
        let claim = Claim {
            primary: ResourceType::new("example.com/v1", "Widget"),
            emits: vec![ResourceType::new("v1", "ConfigMap")],
            reads: Vec::new(),
            wishes: Vec::new(),
            finalizer: None,
            samples: vec![sample],
            extra: "{}".to_owned(),
        };
        let (name, version, extra) = ("counting".to_owned(), "0.1.0".to_owned(), "{}".to_owned());
        Ok(Descriptor { name, version, claims: vec![claim], settings_schema: "{}".to_owned(), extra })
    }

    fn begin(&mut self, _: &Subject) -> Result<(), Failure> {
        Ok(())
    }

    fn needs(&mut self, _: &[Found]) -> Result<Vec<Need>, Failure> {
        Ok(Vec::new())
    }

    fn map_env(&mut self, base: Vec<EnvVar>) -> Result<Result<Vec<EnvVar>, Refusal>, Failure> {
        let (container, name, origin) = ("main".to_owned(), "X".to_owned(), "metadata.name".to_owned());
        let own = EnvVar { container, name, source: EnvSource::Literal("x".to_owned()), origin };
        Ok(Ok(base.into_iter().chain((self.0 == Fickle::Drops).then_some(own)).collect()))
    }

    fn translate(&mut self, env: Vec<EnvVar>) -> Result<Result<Plan, Refusal>, Failure> {
        let data = json!({"n": self.count(Fickle::Answers).to_string()});
        let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w"}, "data": data});
        Ok(Ok(Plan {
            manifests: vec![manifest.to_string()],
            gates: Vec::new(),
            env: if self.0 == Fickle::Drops { Vec::new() } else { env },
            notes: Vec::new(),
            finalizer: None,
            kept: Vec::new(),
            gates_hold: false,
            origins: Vec::new(),
            extra: "{}".to_owned(),
        }))
    }

    fn assess(&mut self, _: &Observation) -> Result<Report, Failure> {
        let message = self.count(Fickle::Reports).to_string();
        let (phase, fields, extra) = ("Ready".to_owned(), "{}".to_owned(), "{}".to_owned());
        Ok(Report { ready: true, phase, message, fields, conditions: Vec::new(), extra })
    }

    fn fuel_used(&self) -> u64 {
        self.count(Fickle::Fuel)
    }

    fn memory(&self) -> usize {
        0
    }
}

fn tried(fickle: Fickle) -> Result<Findings, ConformError> {
    let code = Arc::new(Counting(fickle, AtomicU64::new(0)));
    let file = PolicyFile::default();
    let policy = Arc::new(Policy::admit(code, Digest::of(b"counting"), &file, Limits::default()).unwrap());
    let (cluster, crds) = (Cluster::default(), KnownCrds::default());
    let inputs = Inputs {
        policy: &policy,
        settings: &[],
        without_effect: &[],
        cluster: &cluster,
        crds: &crds,
        files: &[],
        objects: 3,
        seed: 0,
        only: None,
    };
    check(&inputs)
}

#[test]
fn each_difference_between_two_sandboxes_is_reported() {
    let failed = |fickle| {
        let findings = tried(fickle).unwrap();
        let mut failed = findings.failed().map(|result| (result.property, result.found.clone()));
        failed.find(|(property, _)| *property == Property::Determinism).map(|(_, found)| found).unwrap_or_default()
    };
    assert_eq!(failed(Fickle::Nothing), "");
    for (fickle, what) in [(Fickle::Answers, "answers"), (Fickle::Fuel, "fuel"), (Fickle::Reports, "reports")] {
        let found = failed(fickle);
        assert!(found.contains(&format!("two sandboxes give different {what} for the same input")), "{found}");
    }
}

#[test]
fn a_policy_that_drops_variables_of_its_mapping_is_reported() {
    let found = |fickle| {
        let findings = tried(fickle).unwrap();
        let mut failed = findings.failed().map(|result| (result.property, result.found.clone()));
        failed.find(|(property, _)| *property == Property::Variables).map(|(_, found)| found)
    };
    let told = found(Fickle::Drops).unwrap_or_default();
    assert!(told.contains("drops variables that the policy got: main X, main KAOS_CONFORM"), "{told}");
    assert_eq!(found(Fickle::Nothing), None);
}

#[test]
fn a_machine_without_memory_for_a_sandbox_is_no_finding_about_the_policy() {
    let error = tried(Fickle::Closed).map(|findings| findings.results).unwrap_err();
    assert!(matches!(error, ConformError::Stalled { .. }), "{error}");
    assert!(error.to_string().starts_with("sample one of Widget: "), "{error}");
}
