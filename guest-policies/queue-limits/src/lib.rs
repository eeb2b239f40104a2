//! An overlay that gives the servers of each Queue the limits of their namespace.
//!
//! The team that runs the cluster writes the limits into a ConfigMap of the namespace. The overlay reads this ConfigMap
//! and amends the plan of the policy `queue`. The policy `queue` itself does not change.

use kaos_policy_sdk::types::{Claim, Descriptor, Need, Plan, Refusal, Sample, Subject};
use kaos_policy_sdk::{NeedExt as _, Overlay, SubjectExt, amend, export_overlay, include_json, need, note};
use serde::Deserialize;
use serde_json::Value;

/// The id of the need for the limits.
const LIMITS: &str = "limits";
/// The keys of the ConfigMap. Each key is also the name of a resource.
const RESOURCES: [&str; 2] = ["cpu", "memory"];

/// The settings that `settings.schema.json` declares.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Settings {
    config_map: String,
}

/// The overlay.
pub struct QueueLimits;

impl Overlay for QueueLimits {
    fn describe() -> Descriptor {
        let queue = include_json!("../samples/queue.json").to_owned();
        let limits = include_json!("../samples/limits.json").to_owned();
        Descriptor {
            name: "queue-limits".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            claims: vec![Claim {
                primary: need::resource_type("example.com/v1", "Queue"),
                emits: vec![need::resource_type("apps/v1", "StatefulSet")],
                reads: vec![need::resource_type("v1", "ConfigMap")],
                samples: vec![Sample { name: "limited".to_owned(), object: queue, beside: vec![limits] }],
                ..Claim::default()
            }],
            settings_schema: include_json!("../settings.schema.json").to_owned(),
            ..Descriptor::default()
        }
    }

    fn needs(subject: &Subject) -> Vec<Need> {
        let Ok(Settings { config_map }) = subject.read_settings() else { return Vec::new() };
        let limits = need::named(LIMITS, need::reference("v1", "ConfigMap", &config_map));
        vec![need::optional(limits.fields(RESOURCES.map(|resource| need::key("data", resource))))]
    }

    fn amend(subject: &Subject, mut below: Plan) -> Result<Plan, Refusal> {
        let Settings { config_map } = subject.read_settings()?;
        let Some(found) = subject.one(LIMITS).there() else {
            let message = format!("the servers have no limits: there is no ConfigMap {config_map}");
            below.notes.push(note::info("NoLimits", message));
            return Ok(below);
        };
        let limit = |resource| Some((resource, found.at(&["data", resource])?.clone()));
        let limits: Vec<(&str, Value)> = RESOURCES.into_iter().filter_map(limit).collect();
        amend::children(&mut below, |child| {
            let Some(template) = amend::pod_template(&mut child.manifest) else { return };
            let mut origins = Vec::new();
            for container in amend::containers(template) {
                for (resource, limit) in &limits {
                    container["resources"]["limits"][*resource] = limit.clone();
                    let name = container["name"].as_str().unwrap_or_default();
                    let path = format!("spec.template.spec.containers[name=\"{name}\"].resources.limits.{resource}");
                    origins.push((path, format!("{LIMITS} data.{resource}")));
                }
            }
            for (path, from) in origins {
                child.declare(path, from);
            }
        });
        Ok(below)
    }
}

export_overlay!(QueueLimits);
