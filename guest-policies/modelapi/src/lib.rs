//! The kind `ModelAPI`: an endpoint for language models, either a proxy to providers or a model in the cluster.
//!
//! | step | module |
//! |---|---|
//! | the fields of the object, older forms included | `wanted`, `older`, `model_names`, `providers` |
//! | all inputs about one subject | `request` |
//! | variables, and the permission to start without a master key | `mapping`, `keyless`, `litellm_version` |
//! | the proxy, and its generated or checked configuration file | `proxy`, `litellm`, `config_yaml` |
//! | a hosted model and the pull of its data | `hosted` |
//! | manifests | `translate` |
//! | status | `assess` |
#![cfg_attr(all(target_arch = "wasm32", target_os = "unknown"), no_std)]

#[macro_use]
extern crate alloc;

mod assess;
mod config_yaml;
mod hosted;
mod keyless;
mod litellm;
mod litellm_version;
mod mapping;
mod model_names;
mod older;
mod providers;
mod proxy;
mod request;
mod samples;
mod settings;
mod translate;
mod wanted;

use alloc::{borrow::ToOwned, vec::Vec};
use kaos_crds::API_VERSION;
use kaos_policy_sdk::need::resource_type;
use kaos_policy_sdk::types::{Claim, Descriptor, EnvVar, Observation, Plan, Refusal, Report, Subject};
use kaos_policy_sdk::{Policy, include_json, json};
use kaos_workload::{ROUTE_API, ROUTE_KIND, security};

pub use settings::{HostedRun, ModelPull, ModelStore, ProxyConfigFile, Server, Settings};

/// The default policy of the kind `ModelAPI`.
#[derive(Debug)]
pub struct ModelApi;

impl Policy for ModelApi {
    fn describe() -> Descriptor {
        let route = resource_type(ROUTE_API, ROUTE_KIND);
        let [gateway, network] = security::types();
        let claim = Claim {
            primary: resource_type(API_VERSION, "ModelAPI"),
            emits: vec![
                resource_type("v1", "ConfigMap"),
                resource_type("apps/v1", "Deployment"),
                resource_type("v1", "Service"),
                route.clone(),
                gateway.clone(),
                network.clone(),
            ],
            reads: Vec::new(),
            wishes: vec![route, gateway, network],
            finalizer: None,
            samples: samples::samples(),
            extra: json::empty(),
        };
        Descriptor {
            name: "modelapi".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            claims: vec![claim],
            settings_schema: include_json!("../settings.schema.json").to_owned(),
            extra: json::empty(),
        }
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

kaos_policy_sdk::export_policy!(ModelApi, no_std);
