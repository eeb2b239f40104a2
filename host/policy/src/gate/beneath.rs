//! A simple policy that the gate puts below an overlay to evaluate the overlay's samples. This policy has no needs. Its
//! plan has one small workload for each type of workload that the overlay emits, so that the overlay has pods to amend.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};

use crate::{
    code::{Code, Sandbox, World},
    contract::{Claim, Descriptor, EnvVar, Found, Need, Observation, Plan, Refusal, Report, ResourceType, Subject},
    describe::DescribeError,
    digest::{Digest, canonical},
    failure::Failure,
    limits::Limits,
    policy::{Policy, Stack, StackError},
};

/// A reason why the gate cannot evaluate the samples of a claim.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TrialError {
    /// The claim is invalid.
    #[error(transparent)]
    Describe(#[from] DescribeError),
    /// The policies cannot form a [`Stack`], for example because two of them have the same name.
    #[error(transparent)]
    Stack(#[from] StackError),
}

/// Returns the stack of policies with which the gate evaluates the samples of a claim. If `policy` is an overlay, the
/// stack has a simple policy below it.
pub fn trial_stack(policy: &Arc<Policy>, claim: &Claim) -> Result<Stack, TrialError> {
    Ok(match policy.world() {
        World::Policy => Stack::single(Arc::clone(policy))?,
        World::Overlay => Stack::new(Arc::new(Beneath::policy(claim)?), vec![Arc::clone(policy)])?,
    })
}

/// Returns the plan of the policy below an overlay. `claim` is the overlay's claim, `name` is the name of the object,
/// and `env` is the mapping that the overlay returned.
pub(super) fn plan_beneath(claim: &Claim, name: &str, env: &[EnvVar]) -> Plan {
    Beneath { claim: claim.clone(), name: name.to_owned() }.plan(env)
}

/// The policy below the overlay. This policy claims one kind, and answers with small workloads.
#[derive(Clone)]
struct Beneath {
    claim: Claim,
    /// The name of the object in the pass.
    name: String,
}

/// The name of the container in a workload if the mapping names no container.
pub(super) const CONTAINER: &str = "main";

impl Beneath {
    fn policy(claim: &Claim) -> Result<Policy, DescribeError> {
        let claim = Claim { reads: Vec::new(), wishes: Vec::new(), finalizer: None, ..claim.clone() };
        let beneath = Self { claim, name: String::new() };
        let descriptor = beneath.descriptor();
        Policy::trusted(Arc::new(beneath), descriptor, Digest::of(b""))
    }

    /// Returns a workload of this type with the variables of the mapping. Returns `None` if the type is not a workload.
    fn workload(&self, of: &ResourceType, env: &[EnvVar]) -> Option<Value> {
        let labels = json!({"app": label(&self.name)});
        let named: BTreeSet<&str> = env.iter().map(|variable| variable.container.as_str()).collect();
        let names = if named.is_empty() { BTreeSet::from([CONTAINER]) } else { named };
        let container = |name: &str| {
            let own = env.iter().filter(|variable| variable.container == name);
            let variables: Vec<Value> = own.map(|variable| Value::Object(variable.in_pod())).collect();
            json!({"name": name, "image": "registry.example/app:1", "env": variables})
        };
        let containers: Vec<Value> = names.into_iter().map(container).collect();
        let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
        let mut batch = template.clone();
        batch["spec"]["restartPolicy"] = json!("Never");
        let selector = json!({"matchLabels": labels});
        let spec = match (of.api_version.as_str(), of.kind.as_str()) {
            ("apps/v1", "Deployment" | "DaemonSet") => json!({"selector": selector, "template": template}),
            ("apps/v1", "StatefulSet") => {
                json!({"selector": selector, "serviceName": self.name, "template": template})
            }
            ("batch/v1", "Job") => json!({"template": batch}),
            ("batch/v1", "CronJob") => json!({"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": batch}}}),
            _ => return None,
        };
        let metadata = json!({"name": self.name, "labels": labels});
        Some(json!({"apiVersion": of.api_version, "kind": of.kind, "metadata": metadata, "spec": spec}))
    }

    /// Returns the plan. A plan without workloads has no mapping, because no pod could have the variables.
    fn plan(&self, env: &[EnvVar]) -> Plan {
        let workloads = self.claim.emits.iter().filter_map(|of| self.workload(of, env));
        let manifests: Vec<_> = workloads.map(|workload| canonical(&workload)).collect();
        Plan {
            env: if manifests.is_empty() { Vec::new() } else { env.to_vec() },
            manifests,
            gates: Vec::new(),
            notes: Vec::new(),
            finalizer: None,
            kept: Vec::new(),
            gates_hold: false,
            origins: Vec::new(),
            extra: "{}".to_owned(),
        }
    }

    fn descriptor(&self) -> Descriptor {
        Descriptor {
            // No other policy can have this name, because names of policies contain no parentheses.
            name: "(beneath)".to_owned(),
            version: "0.0.0".to_owned(),
            claims: vec![self.claim.clone()],
            settings_schema: "{}".to_owned(),
            extra: "{}".to_owned(),
        }
    }
}

/// Shortens a name to the maximum length of a label's value.
fn label(name: &str) -> &str {
    let end = name.char_indices().nth(63).map_or(name.len(), |(at, _)| at);
    name.get(..end).unwrap_or(name).trim_end_matches(|c: char| !c.is_ascii_alphanumeric())
}

impl Code for Beneath {
    fn world(&self) -> World {
        World::Policy
    }

    fn open(&self, _: &Limits) -> Result<Box<dyn Sandbox + '_>, Failure> {
        Ok(Box::new(self.clone()))
    }
}

impl Sandbox for Beneath {
    fn describe(&mut self) -> Result<Descriptor, Failure> {
        Ok(self.descriptor())
    }

    fn begin(&mut self, subject: &Subject) -> Result<(), Failure> {
        let object: Value = serde_json::from_str(&subject.object).unwrap_or_default();
        object["metadata"]["name"].as_str().unwrap_or_default().clone_into(&mut self.name);
        Ok(())
    }

    fn needs(&mut self, _: &[Found]) -> Result<Vec<Need>, Failure> {
        Ok(Vec::new())
    }

    fn map_env(&mut self, base: Vec<EnvVar>) -> Result<Result<Vec<EnvVar>, Refusal>, Failure> {
        Ok(Ok(base))
    }

    fn translate(&mut self, env: Vec<EnvVar>) -> Result<Result<Plan, Refusal>, Failure> {
        Ok(Ok(self.plan(&env)))
    }

    fn assess(&mut self, _: &Observation) -> Result<Report, Failure> {
        let text = String::new;
        Ok(Report {
            ready: false,
            phase: text(),
            message: text(),
            fields: "{}".to_owned(),
            conditions: Vec::new(),
            extra: "{}".to_owned(),
        })
    }

    fn fuel_used(&self) -> u64 {
        0
    }

    fn memory(&self) -> usize {
        0
    }
}
