//! The kinds `AccessGrant` and `AuthorizationPolicy`. Their objects decide which callers are allowed to call which
//! resources through the gateway.
//!
//! An AuthorizationPolicy becomes a ConfigMap with the rules and the data of the decision point. An AccessGrant has no
//! children. Its status says whether the decision point's data contains the AccessGrant.
//!
//! | step | module |
//! |---|---|
//! | fields of an AccessGrant, and whether the AccessGrant is in force | `grant` |
//! | report on an AccessGrant | `enforced` |
//! | fields and needs of an AuthorizationPolicy | `projection` |
//! | data of the decision point | `document` |
//! | names of kinds, ids of callers and resources | `ids` |
//! | labels of resources | `selector` |
//! | report on an AuthorizationPolicy | `projected` |
//! | rules of the decision point | `policy.rego` |
#![cfg_attr(all(target_arch = "wasm32", target_os = "unknown"), no_std)]

#[macro_use]
extern crate alloc;

mod document;
mod enforced;
mod grant;
mod ids;
mod projected;
mod projection;
mod samples;
mod selector;
mod settings;

use alloc::{borrow::ToOwned, vec::Vec};
use kaos_crds::API_VERSION;
use kaos_policy_sdk::need::resource_type;
use kaos_policy_sdk::types::{Claim, Descriptor, EnvVar, Need, Observation, Plan, Refusal, Report, Subject};
use kaos_policy_sdk::{Policy, SubjectExt, include_json, json};

use ids::{GRANT, PROJECTION};
pub use projection::RULES;
pub use settings::{AgentIdentity, Provider, Settings, UserIdentity};

/// The default policy of the kinds `AccessGrant` and `AuthorizationPolicy`.
#[derive(Debug)]
pub struct Authorization;

/// Returns whether the subject is an AuthorizationPolicy.
fn is_projection(subject: &Subject) -> bool {
    subject.object().kind() == PROJECTION
}

impl Policy for Authorization {
    fn describe() -> Descriptor {
        let kaos = |kind: &str| resource_type(API_VERSION, kind);
        let config = resource_type("v1", projection::CHILD);
        let grant = Claim {
            primary: kaos(GRANT),
            emits: Vec::new(),
            reads: vec![kaos(PROJECTION)],
            wishes: Vec::new(),
            finalizer: None,
            samples: samples::grants(),
            extra: json::empty(),
        };
        let projection = Claim {
            primary: kaos(PROJECTION),
            emits: vec![config.clone()],
            reads: vec![kaos("Agent"), kaos(GRANT), kaos("MCPServer"), kaos("MemoryStore"), kaos("ModelAPI"), config],
            wishes: Vec::new(),
            finalizer: None,
            samples: samples::projections(),
            extra: json::empty(),
        };
        Descriptor {
            name: "authorization".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            claims: vec![grant, projection],
            settings_schema: include_json!("../settings.schema.json").to_owned(),
            extra: json::empty(),
        }
    }

    fn needs(subject: &Subject) -> Vec<Need> {
        if is_projection(subject) { projection::needs(subject) } else { grant::needs(subject) }
    }

    fn translate(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
        if is_projection(subject) { projection::translate(subject, env) } else { grant::translate(subject, env) }
    }

    fn assess(subject: &Subject, seen: &Observation) -> Report {
        if is_projection(subject) { projected::assess(subject, seen) } else { enforced::assess(subject, seen) }
    }
}

kaos_policy_sdk::export_policy!(Authorization, no_std);
