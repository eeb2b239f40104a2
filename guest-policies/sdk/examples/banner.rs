//! A whole policy: a `Banner` becomes a ConfigMap with its text.

use kaos_policy_sdk::types::*;
use kaos_policy_sdk::{Policy, SubjectExt, condition, export_policy, json, need, plan, refusal, testing};
use serde_json::json;

struct Banner;

impl Policy for Banner {
    fn describe() -> Descriptor {
        let claim = Claim {
            primary: need::resource_type("example.org/v1", "Banner"),
            emits: vec![need::resource_type("v1", "ConfigMap")],
            reads: Vec::new(),
            wishes: Vec::new(),
            finalizer: None,
            retired_finalizers: Vec::new(),
            samples: Vec::new(),
            extra: json::empty(),
        };
        Descriptor {
            name: "banner".to_owned(),
            version: "0.1.0".to_owned(),
            claims: vec![claim],
            settings_schema: json::empty(),
            extra: json::empty(),
        }
    }

    fn needs(_: &Subject) -> Vec<Need> {
        Vec::new()
    }

    fn map_env(_: &Subject, base: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
        Ok(base)
    }

    fn translate(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
        let object = subject.object();
        let Some(text) = object.str_at(&["spec", "text"]) else {
            return Err(refusal::invalid("spec.text", "is required; say what the banner shows"));
        };
        let metadata = json!({"name": object.name(), "namespace": object.namespace()});
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}});
        Ok(plan::of(&[config], env))
    }

    fn assess(_: &Subject, seen: &Observation) -> Report {
        let ready = seen.outcome == Outcome::Applied;
        let conditions = if ready { vec![condition::yes("Shown", "Applied", "the banner is up")] } else { Vec::new() };
        let phase = if ready { "Ready" } else { "Pending" }.to_owned();
        Report { ready, phase, message: String::new(), fields: json::empty(), conditions, extra: json::empty() }
    }
}

export_policy!(Banner);

fn main() {
    let banner = json!({"metadata": {"name": "b", "namespace": "n"}, "spec": {"text": "hello"}});
    if let Ok(plan) = testing::plan::<Banner>(&testing::subject(&banner).build()) {
        println!("{}", plan.manifests.join("\n"));
    }
}
