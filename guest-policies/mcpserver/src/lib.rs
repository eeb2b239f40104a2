//! The kind `MCPServer`: a container that serves tools to agents over the Model Context Protocol.
//!
//! | step | module |
//! |---|---|
//! | the fields of the object, older forms included | `wanted` |
//! | the registry of runtimes | `registry` |
//! | the start of the container | `launch` |
//! | all inputs about one subject | `request` |
//! | variables | `mapping` |
//! | manifests | `translate` |
//! | status, with the tools that `python` finds | `assess` |
#![cfg_attr(all(target_arch = "wasm32", target_os = "unknown"), no_std)]

#[macro_use]
extern crate alloc;

mod assess;
mod launch;
mod mapping;
mod python;
mod registry;
mod request;
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

pub use registry::{Prose, RegistrySource, Runtime};
pub use settings::Settings;

/// The default policy of the kind `MCPServer`.
#[derive(Debug)]
pub struct McpServer;

impl Policy for McpServer {
    fn describe() -> Descriptor {
        let route = resource_type(ROUTE_API, ROUTE_KIND);
        let [gateway, network] = security::types();
        let claim = Claim {
            primary: resource_type(API_VERSION, "MCPServer"),
            emits: vec![
                resource_type("apps/v1", "Deployment"),
                resource_type("v1", "Service"),
                route.clone(),
                gateway.clone(),
                network.clone(),
            ],
            reads: vec![resource_type("v1", "ConfigMap")],
            wishes: vec![route, gateway, network],
            finalizer: None,
            samples: samples::samples(),
            extra: json::empty(),
        };
        Descriptor {
            name: "mcpserver".to_owned(),
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

kaos_policy_sdk::export_policy!(McpServer, no_std);
