//! A policy that runs each `Queue` as a cluster of NATS servers.
//!
//! | file | contains |
//! |---|---|
//! | `lib.rs` | the five functions of the policy |
//! | `spec.rs` | the spec of a Queue, the settings, and the checks of the object |
//! | `found.rs` | the needs, and the answers to them |
//! | `config.rs` | the configuration of the servers |
//! | `children.rs` | the manifests, with the origins of their values |
//! | `status.rs` | the report for the status |
//!
//! `docs/guide/a-real-policy.md` explains the policy step by step. `policy.js` is the same policy as a script.

mod children;
mod config;
mod found;
mod spec;
mod status;

use kaos_policy_sdk::env::{self, Env};
use kaos_policy_sdk::types::{Claim, Descriptor, EnvVar, Need, Observation, Plan, Refusal, Report, Sample, Subject};
use kaos_policy_sdk::{Policy, SubjectExt, export_policy, include_json, need, plan};

use crate::children::CONTAINER;
use crate::found::Found;
use crate::spec::{Settings, Spec};

const API_VERSION: &str = "example.com/v1";

/// The policy.
pub struct Queue;

impl Policy for Queue {
    fn describe() -> Descriptor {
        let of = need::resource_type;
        Descriptor {
            name: "queue".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            claims: vec![Claim {
                primary: of(API_VERSION, "Queue"),
                emits: vec![
                    of("v1", "ConfigMap"),
                    of("v1", "Service"),
                    of("policy/v1", "PodDisruptionBudget"),
                    of("apps/v1", "StatefulSet"),
                ],
                reads: vec![of("v1", "ConfigMap"), of("v1", "Secret")],
                samples: samples(),
                ..Claim::default()
            }],
            settings_schema: include_json!("../settings.schema.json").to_owned(),
            ..Descriptor::default()
        }
    }

    fn needs(subject: &Subject) -> Vec<Need> {
        // If the spec cannot be read, name no needs here: `translate` refuses the spec.
        subject.object().read::<Spec>("spec").map(|spec| found::needs(&spec)).unwrap_or_default()
    }

    fn map_env(subject: &Subject, base: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
        let spec: Spec = subject.object().read("spec")?;
        let mut env = Env::over(base);
        let mut server = env.container(CONTAINER);
        server.bind("POD_NAME", env::field("metadata.name"), "metadata.name");
        if let Some(secret) = &spec.credentials_secret {
            server.bind("QUEUE_PASSWORD", env::secret_key(secret, found::PASSWORD), "spec.credentialsSecret");
        }
        server.user(&spec.env, "spec.env")?;
        Ok(env.into_vars())
    }

    fn translate(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
        let object = subject.object();
        let spec: Spec = object.read("spec")?;
        let settings: Settings = subject.read_settings()?;
        spec::check(&object, &spec)?;
        let found = Found::of(subject, &spec);
        let children = children::all(subject, &spec, &settings, &found, &env);
        let mut plan = plan::of(&children, env);
        plan.gates = found.blockers();
        // Without the password or the extra configuration, the plan is incomplete. So its plan gates hold back every
        // apply, not only the first.
        plan.gates_hold = !plan.gates.is_empty();
        plan.notes = found.notes();
        Ok(plan)
    }

    fn assess(subject: &Subject, seen: &Observation) -> Report {
        status::report(subject, seen)
    }
}

/// Returns the samples that the gate and the tests evaluate.
fn samples() -> Vec<Sample> {
    let sample = |name: &str, object: &str, beside: &[&str]| Sample {
        name: name.to_owned(),
        object: object.to_owned(),
        beside: beside.iter().map(|&object| object.to_owned()).collect(),
    };
    let orders = include_json!("../samples/orders.json");
    let extra = include_json!("../samples/extra.json");
    vec![
        sample("minimal", include_json!("../samples/minimal.json"), &[]),
        sample("orders", orders, &[include_json!("../samples/login.json"), extra]),
        sample("no-secret", orders, &[extra]),
        sample("no-password", orders, &[include_json!("../samples/no-password.json"), extra]),
    ]
}

export_policy!(Queue);
