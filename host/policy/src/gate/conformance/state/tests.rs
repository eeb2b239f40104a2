//! Tests with an overlay that counts its calls in a sandbox.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use super::super::{Terms, run};
use crate::{
    code::{Code, Sandbox, World},
    contract::{
        Claim, Cluster, Descriptor, EnvSource, EnvVar, Found, Need, Note, Observation, Plan, Reference, Refusal,
        Report, ResourceType, Sample, Severity, Subject, Target,
    },
    digest::Digest,
    failure::{Failure, Verb},
    gate::{AtOnce, KnownServer, LoadError},
    limits::Limits,
    manifest::PolicyFile,
    policy::Policy,
};

/// An overlay over Widgets. If `counts` names a function, each answer of this function contains the number of the call.
#[derive(Clone, Copy)]
struct Counting {
    counts: Option<Verb>,
    calls: usize,
}

impl Counting {
    fn count(&mut self, verb: Verb) -> usize {
        self.calls += usize::from(self.counts == Some(verb));
        self.calls
    }
}

impl Code for Counting {
    fn world(&self) -> World {
        World::Overlay
    }

    fn open(&self, _: &Limits) -> Result<Box<dyn Sandbox + '_>, Failure> {
        Ok(Box::new(*self))
    }
}

impl Sandbox for Counting {
    fn describe(&mut self) -> Result<Descriptor, Failure> {
        let object = r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}}"#;
        let sample = Sample { name: "one".to_owned(), object: object.to_owned(), beside: Vec::new() };
        let claim = Claim {
            primary: ResourceType::new("example.com/v1", "Widget"),
            emits: vec![ResourceType::new("apps/v1", "Deployment")],
            reads: vec![ResourceType::new("v1", "ConfigMap")],
            wishes: Vec::new(),
            finalizer: None,
            samples: vec![sample],
            extra: "{}".to_owned(),
        };
        Ok(Descriptor {
            name: "counting".to_owned(),
            version: "0.1.0".to_owned(),
            claims: vec![claim],
            settings_schema: "{}".to_owned(),
            extra: "{}".to_owned(),
        })
    }

    fn begin(&mut self, _: &Subject) -> Result<(), Failure> {
        Ok(())
    }

    fn needs(&mut self, _: &[Found]) -> Result<Vec<Need>, Failure> {
        let (api_version, kind, name) = ("v1".to_owned(), "ConfigMap".to_owned(), "c".to_owned());
        let optional = self.count(Verb::Needs) % 2 == 1;
        let target = Target::Named(Reference { api_version, kind, namespace: None, name: name.clone() });
        Ok(vec![Need { id: name, target, fields: Vec::new(), optional }])
    }

    fn map_env(&mut self, mut base: Vec<EnvVar>) -> Result<Result<Vec<EnvVar>, Refusal>, Failure> {
        let source = EnvSource::Literal(self.count(Verb::MapEnv).to_string());
        let (container, name, origin) = ("main".to_owned(), "X".to_owned(), "metadata.name".to_owned());
        base.push(EnvVar { container, name, source, origin });
        Ok(Ok(base))
    }

    fn translate(&mut self, _: Vec<EnvVar>) -> Result<Result<Plan, Refusal>, Failure> {
        Err(Failure::NotOfThisWorld { verb: Verb::Translate })
    }

    fn amend(&mut self, mut below: Plan) -> Result<Result<Plan, Refusal>, Failure> {
        let message = self.count(Verb::Amend).to_string();
        below.notes.push(Note { severity: Severity::Info, reason: "Counted".to_owned(), message, path: None });
        Ok(Ok(below))
    }

    fn assess(&mut self, _: &Observation) -> Result<Report, Failure> {
        Err(Failure::NotOfThisWorld { verb: Verb::Assess })
    }

    fn fuel_used(&self) -> u64 {
        1
    }

    fn memory(&self) -> usize {
        0
    }
}

fn tried(counts: Option<Verb>) -> Result<(), LoadError> {
    let (code, limits) = (Arc::new(Counting { counts, calls: 0 }), Limits::default());
    let policy = Policy::admit(code, Digest::of(b"counting"), &PolicyFile::default(), limits)?;
    let (cluster, server) = (Cluster::default(), KnownServer::default());
    let terms = Terms { fuel: limits.fuel, cluster: &cluster, turns: &AtOnce, server: &server };
    run(&Arc::new(policy), &[], &terms).map(drop)
}

#[test]
fn an_overlay_that_counts_its_calls_is_refused_and_the_error_names_the_function() {
    for counted in [Verb::Needs, Verb::MapEnv, Verb::Amend] {
        match tried(Some(counted)) {
            Err(LoadError::KeepsState { verb, .. }) => assert_eq!(verb, counted),
            other => panic!("{counted:?}: {other:?}"),
        }
    }
    assert!(tried(None).is_ok());
}
