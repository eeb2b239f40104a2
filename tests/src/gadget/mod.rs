//! A policy for tests. The policy claims a kind that no default policy claims, and uses every feature of the contract.
//!
//! A `Gadget` becomes a Secret, a `ServiceAccount`, a `ConfigMap`, a Deployment and a Service with the Gadget's name.
//! The policy has a finalizer, needs in two rounds, needs by label, needs in another namespace, and a plan gate. Some
//! fields of a Gadget make the policy refuse, trap, break a rule of the guard, or trap while it writes the report. The
//! policy returns the manifests in a wrong order, so that tests can show that the host corrects the order.

pub mod hold;
mod inputs;
mod object;
mod plan;
mod report;

use std::sync::Arc;

use anyhow::Result;
use kaos_policy::{
    code::Native,
    contract::{Claim, Descriptor, EnvVar, Plan, Refusal, ResourceType, Sample, Subject},
    digest::Digest,
    limits::Limits,
    manifest::PolicyFile,
    policy::Policy,
};
use serde_json::{Value, json};

pub use object::{API_VERSION, KIND};

/// The finalizer of the policy. The finalizer stays on the Gadget until the children are gone.
pub const FINALIZER: &str = "test.example.com/teardown";
/// The CustomResourceDefinition of Gadgets.
pub const DEFINITION: &str = include_str!("crd.yaml");

const FILE: &str = include_str!("policy.yaml");

/// The two editions (versions) of the policy.
///
/// The editions give different images to Gadgets with `follows: true`, and are otherwise equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edition {
    /// The first edition.
    First,
    /// The second edition.
    Second,
}

/// Returns an edition of the policy, as native code.
pub fn policy(edition: Edition) -> Result<Arc<Policy>> {
    let (describe, translate): (fn() -> Descriptor, Translate) = match edition {
        Edition::First => (|| descriptor("1.0.0"), plan::first),
        Edition::Second => (|| descriptor("2.0.0"), plan::second),
    };
    let code = Native {
        describe,
        needs: inputs::needs,
        map_env: |subject, env| Ok(plan::map_env(subject, env)),
        translate,
        assess: report::assess,
    };
    let digest = Digest::of(format!("{FILE}{edition:?}").as_bytes());
    Ok(Arc::new(Policy::admit(Arc::new(code), digest, &PolicyFile::parse(FILE)?, Limits::default())?))
}

type Translate = fn(&Subject, Vec<EnvVar>) -> Result<Plan, Refusal>;

/// Builds a Gadget without a namespace.
pub fn gadget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec})
}

fn descriptor(version: &str) -> Descriptor {
    let core = |kind: &str| ResourceType::new("v1", kind);
    let mut sample = gadget("sample", &json!({"image": "registry.example/gadget"}));
    sample["metadata"]["namespace"] = json!("default");
    let claim = Claim {
        primary: ResourceType::new(API_VERSION, KIND),
        emits: vec![
            core("Secret"),
            core("ServiceAccount"),
            core("ConfigMap"),
            ResourceType::new("apps/v1", "Deployment"),
            core("Service"),
        ],
        reads: vec![core("ConfigMap"), core("Secret"), ResourceType::new(API_VERSION, KIND)],
        wishes: Vec::new(),
        finalizer: Some(FINALIZER.to_owned()),
        samples: vec![Sample { name: "plain".to_owned(), object: sample.to_string(), beside: Vec::new() }],
        extra: "{}".to_owned(),
    };
    Descriptor {
        name: "gadget".to_owned(),
        version: version.to_owned(),
        claims: vec![claim],
        settings_schema: json!({"type": "object", "properties": {
            "port": {"type": "integer", "default": 80, "x-env": "GADGET_PORT"}}})
        .to_string(),
        extra: "{}".to_owned(),
    }
}
