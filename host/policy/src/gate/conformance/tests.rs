//! Tests with a policy that answers differently in every sandbox. The policy consists of functions of this process: a
//! component imports nothing, so it could not answer differently.
#![allow(clippy::unnecessary_wraps, clippy::needless_pass_by_value)]

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::{
    code::{Code, Sandbox},
    contract::{Descriptor, EnvVar, Found, Need, Observation, Plan, Reference, Report, ResourceType, Subject, Target},
    digest::Digest,
    gate::{AtOnce, KnownServer},
    limits::Limits,
};

/// The part of the answer that differs between sandboxes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fickle {
    Nothing,
    Needs,
    Answers,
    Fuel,
    Reports,
    /// No part differs, but the report has fields that only the host writes.
    Fields,
    /// No part differs, but a manifest has an unknown field.
    Newer,
    /// No part differs, but each of three samples has an annotation with a long text and a costly pattern.
    Annotated,
}

/// A policy for Widgets that counts its sandboxes.
struct Counting(Fickle, AtomicU64);

struct Opened(Fickle, u64);

impl Opened {
    /// Returns the number of sandboxes if `of` is the part that differs, and 0 otherwise.
    fn count(&self, of: Fickle) -> u64 {
        if self.0 == of { self.1 } else { 0 }
    }
}

impl Code for Counting {
    fn world(&self) -> World {
        World::Policy
    }

    fn open(&self, _: &Limits) -> Result<Box<dyn Sandbox + '_>, Failure> {
        Ok(Box::new(Opened(self.0, self.1.fetch_add(1, Ordering::Relaxed))))
    }
}

fn config_map() -> ResourceType {
    ResourceType::new("v1", "ConfigMap")
}

fn text(text: &str) -> String {
    text.to_owned()
}

impl Sandbox for Opened {
    fn describe(&mut self) -> Result<Descriptor, Failure> {
        let object = r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"}}"#;
        let slow =
            r#"{"type":"object","properties":{"x":{"type":"string","x-annotation":true,"pattern":"^1*1{100}$"}}}"#;
        let annotations = format!(r#""annotations":{{"settings.kaos.tools/x":"{}"}}"#, "1".repeat(20_000));
        let annotated = object.replace(r#""name":"w""#, &format!(r#""name":"w",{annotations}"#));
        let sample = |name: &str, object: &str| Sample { name: text(name), object: text(object), beside: Vec::new() };
        let (samples, settings_schema) = match self.0 {
            Fickle::Annotated => (["one", "two", "three"].map(|name| sample(name, &annotated)).to_vec(), text(slow)),
            _ => (vec![sample("one", object)], text("{}")),
        };
        let claim = Claim {
            primary: ResourceType::new("example.com/v1", "Widget"),
            emits: vec![config_map()],
            reads: vec![config_map()],
            wishes: Vec::new(),
            finalizer: None,
            samples,
            extra: text("{}"),
        };
        let (claims, extra) = (vec![claim], text("{}"));
        Ok(Descriptor { name: text("counting"), version: text("0.1.0"), claims, settings_schema, extra })
    }

    fn begin(&mut self, _: &Subject) -> Result<(), Failure> {
        Ok(())
    }

    fn needs(&mut self, _: &[Found]) -> Result<Vec<Need>, Failure> {
        let name = format!("c{}", self.count(Fickle::Needs));
        let of = config_map();
        let reference = Reference { api_version: of.api_version, kind: of.kind, namespace: None, name: name.clone() };
        Ok(vec![Need { id: name, target: Target::Named(reference), fields: Vec::new(), optional: false }])
    }

    fn map_env(&mut self, base: Vec<EnvVar>) -> Result<Result<Vec<EnvVar>, Refusal>, Failure> {
        Ok(Ok(base))
    }

    fn translate(&mut self, env: Vec<EnvVar>) -> Result<Result<Plan, Refusal>, Failure> {
        let count = self.count(Fickle::Answers);
        let more = if self.0 == Fickle::Newer { r#","newer":{}"# } else { "" };
        let manifest = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"w"}},"data":{{"n":"{count}"}}{more}}}"#
        );
        Ok(Ok(Plan {
            manifests: vec![manifest],
            gates: Vec::new(),
            env,
            notes: Vec::new(),
            finalizer: None,
            kept: vec![],
            gates_hold: false,
            origins: Vec::new(),
            extra: text("{}"),
        }))
    }

    fn assess(&mut self, _: &Observation) -> Result<Report, Failure> {
        let message = self.count(Fickle::Reports).to_string();
        let fields = if self.0 == Fickle::Fields { r#"{"ready":false,"phase":"Mine","endpoint":"e"}"# } else { "{}" };
        let (phase, fields, extra) = (text("Ready"), text(fields), text("{}"));
        Ok(Report { ready: true, phase, message, fields, conditions: Vec::new(), extra })
    }

    fn fuel_used(&self) -> u64 {
        self.count(Fickle::Fuel)
    }

    fn memory(&self) -> usize {
        0
    }
}

fn tried(fickle: Fickle) -> Result<SampleReport, LoadError> {
    tried_for(fickle, false)
}

fn tried_for(fickle: Fickle, is_newer: bool) -> Result<SampleReport, LoadError> {
    tried_on(fickle, &KnownServer { is_newer })
}

fn tried_on(fickle: Fickle, server: &dyn Server) -> Result<SampleReport, LoadError> {
    tried_with(fickle, server, Limits::default().fuel)
}

fn tried_with(fickle: Fickle, server: &dyn Server, fuel: u64) -> Result<SampleReport, LoadError> {
    let code = Arc::new(Counting(fickle, AtomicU64::new(0)));
    let limits = Limits::default();
    let policy = Policy::admit(code, Digest::of(b"counting"), &crate::manifest::PolicyFile::default(), limits)?;
    let terms = Terms { fuel, cluster: &Cluster::default(), turns: &AtOnce, server };
    run(&Arc::new(policy), &[], &terms)
}

#[test]
fn settings_in_annotations_of_samples_count_against_the_time_of_a_check() {
    let with = |fuel| tried_with(Fickle::Annotated, &KnownServer::default(), fuel);
    let Err(LoadError::SamplesTooCostly { before, .. }) = with(500_000) else { panic!("another result") };
    assert_eq!(before, "two");
    assert!(with(Limits::default().fuel).is_ok());
}

#[test]
fn an_unknown_field_is_refused_unless_the_server_is_newer() {
    let Err(refused) = tried_for(Fickle::Newer, false) else { panic!("the gate accepted the policy") };
    assert!(refused.to_string().contains("has no field \"newer\""), "{refused}");
    let told = tried_for(Fickle::Newer, true).unwrap().newer.unwrap();
    assert!(told.contains("has no field \"newer\"") && told.contains("the API server is newer"), "{told}");
    assert_eq!(tried_for(Fickle::Nothing, true).unwrap().newer, None);
}

#[test]
fn a_server_that_does_not_say_its_version_is_neither_newer_nor_older() {
    struct Silent;
    impl Server for Silent {
        fn is_newer(&self) -> Result<bool, String> {
            Err("the server is away".to_owned())
        }
    }
    let Err(waits) = tried_on(Fickle::Newer, &Silent) else { panic!("the gate accepted the policy") };
    assert!(!waits.is_lasting() && waits.reason() == "ServerDoesNotAnswer", "{waits}");
    for told in ["has no field \"newer\"", "the version of this API server is unknown: the server is away"] {
        assert!(waits.to_string().contains(told), "{waits}");
    }
    assert_eq!(tried_on(Fickle::Nothing, &Silent).unwrap().newer, None, "the gate does not ask for the version");
}

#[test]
fn each_difference_between_two_passes_is_reported() {
    let differs = |fickle| match tried(fickle) {
        Err(LoadError::NotDeterministic { kind, sample, what }) if (&*kind, &*sample) == ("Widget", "one") => what,
        other => panic!("{:?}", other.map(|told| told.outcome)),
    };
    assert_eq!(differs(Fickle::Needs), "needs");
    assert_eq!(differs(Fickle::Answers), "answers");
    assert_eq!(differs(Fickle::Fuel), "fuel");
    assert_eq!(differs(Fickle::Reports), "reports");
    let told = tried(Fickle::Nothing).unwrap();
    assert!(told.outcome.starts_with("1 of 1 samples end in a plan") && told.dropped.is_none());
}

#[test]
fn report_fields_that_only_the_host_writes_are_named_to_the_author() {
    let told = tried(Fickle::Fields).unwrap().dropped.unwrap();
    assert!(
        told.starts_with("the policy's reports must not have phase, ready in `fields`: only the operator writes"),
        "{told}"
    );
}
