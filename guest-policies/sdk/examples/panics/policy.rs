//! A policy that panics, for tests of the host's message. The object's field `spec.does`, or the setting `does`,
//! chooses the kind of panic.

use alloc::{borrow::ToOwned, string::String, vec, vec::Vec};
use kaos_policy_sdk::types::{Claim, Descriptor, EnvVar, Need, Observation, Plan, Refusal, Report, Sample, Subject};
use kaos_policy_sdk::{Decode, Policy, SubjectExt, need, plan};

/// The policy.
pub(crate) struct Panics;

#[derive(Decode)]
struct Settings {
    does: Option<String>,
}

/// Returns the kind of panic that the object or the settings choose.
fn does(subject: &Subject) -> String {
    let by_setting = subject.settings::<Settings>().ok().and_then(|settings| settings.does);
    let by_object = subject.object().str_at(&["spec", "does"]).map(ToOwned::to_owned);
    by_object.or(by_setting).unwrap_or_default()
}

impl Policy for Panics {
    fn describe() -> Descriptor {
        let sample = Sample {
            name: "calm".to_owned(),
            object: r#"{"apiVersion":"example.org/v1","kind":"Fuse","metadata":{"name":"a","namespace":"b"}}"#
                .to_owned(),
            beside: Vec::new(),
        };
        let claim = Claim {
            primary: need::resource_type("example.org/v1", "Fuse"),
            emits: vec![need::resource_type("v1", "ConfigMap")],
            samples: vec![sample],
            ..Claim::default()
        };
        Descriptor {
            name: "panics".to_owned(),
            version: "0.1.0".to_owned(),
            claims: vec![claim],
            settings_schema: r#"{"properties":{"does":{"type":"string"}},"type":"object"}"#.to_owned(),
            ..Descriptor::default()
        }
    }

    #[allow(clippy::expect_used, reason = "the object asks for the panic")]
    fn needs(subject: &Subject) -> Vec<Need> {
        if does(subject) == "expects" {
            subject.object().str_at(&["spec", "nothing"]).expect("spec.nothing is there");
        }
        Vec::new()
    }

    fn map_env(_: &Subject, base: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
        Ok(base)
    }

    #[allow(clippy::panic, clippy::indexing_slicing, reason = "the object asks for the panic")]
    fn translate(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
        match does(subject).as_str() {
            "indexes" => drop(env[env.len()].clone()),
            "panics" => panic!("the object says: \u{1b}[2J {}", "long ".repeat(500)),
            _ => {}
        }
        Ok(plan::of(&[], env))
    }

    fn assess(_: &Subject, _: &Observation) -> Report {
        Report { ready: true, phase: "Ready".to_owned(), message: String::new(), ..Report::default() }
    }
}
