//! The kind `Agent`: a language model with instructions, tools and peers, served over HTTP.
//!
//! | step | module |
//! |---|---|
//! | the fields of the object, older forms included | `wanted` |
//! | the referenced objects: model, tools, peers | `linked` |
//! | memory in a MemoryStore | `memory` |
//! | addresses that lead through the Gateway | `routed` |
//! | the Agent's own ServiceAccount | `account` |
//! | a coding harness instead of the default runtime | `harness` |
//! | all inputs about one subject | `request` |
//! | variables | `mapping` |
//! | manifests | `translate` |
//! | variables that the image ignores | `ignored` |
//! | status | `assess` |
#![cfg_attr(all(target_arch = "wasm32", target_os = "unknown"), no_std)]

#[macro_use]
extern crate alloc;

mod account;
mod assess;
mod harness;
mod ignored;
mod linked;
mod mapping;
mod memory;
mod request;
mod routed;
mod samples;
mod settings;
mod translate;
mod wanted;

use alloc::{borrow::ToOwned, vec::Vec};
use kaos_crds::API_VERSION;
use kaos_policy_sdk::need::resource_type;
use kaos_policy_sdk::types::{Claim, Descriptor, EnvVar, Need, Observation, Plan, Refusal, Report, Subject};
use kaos_policy_sdk::{Policy, include_json, json};
use kaos_workload::{ROUTE_API, ROUTE_KIND, security};

pub use ignored::KAOS_IMAGE;
pub use settings::{
    AccountSettings, AgentIdentity, HarnessSettings, ImageVariables, LocalMemorySettings, MemorySettings,
    RoutingSettings, Settings,
};

/// The default policy of the kind `Agent`.
#[derive(Debug)]
pub struct Agent;

impl Policy for Agent {
    fn describe() -> Descriptor {
        let route = resource_type(ROUTE_API, ROUTE_KIND);
        let [gateway, network] = security::types();
        let kaos = |kind: &str| resource_type(API_VERSION, kind);
        let claim = Claim {
            primary: kaos("Agent"),
            emits: vec![
                resource_type("apps/v1", "Deployment"),
                resource_type("v1", "Service"),
                resource_type("v1", "ServiceAccount"),
                route.clone(),
                gateway.clone(),
                network.clone(),
            ],
            reads: vec![
                kaos("ModelAPI"),
                kaos("MCPServer"),
                kaos("Agent"),
                kaos("MemoryStore"),
                resource_type("v1", "ConfigMap"),
            ],
            wishes: vec![route, gateway, network],
            finalizer: None,
            samples: samples::samples(),
            extra: json::empty(),
        };
        Descriptor {
            name: "agent".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            claims: vec![claim],
            settings_schema: include_json!("../settings.schema.json").to_owned(),
            extra: json::empty(),
        }
    }

    fn needs(subject: &Subject) -> Vec<Need> {
        request::needs(subject)
    }

    fn map_env(subject: &Subject, base: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
        mapping::map(subject, base)
    }

    fn translate(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
        translate::translate(subject, &env)
    }

    fn assess(subject: &Subject, seen: &Observation) -> Report {
        assess::assess(subject, seen)
    }
}

kaos_policy_sdk::export_policy!(Agent, no_std);
