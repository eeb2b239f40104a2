//! An overlay that changes the registry of every image.
//!
//! An overlay changes the answer of the policy below it: its variables (`map_env`), its plan (`amend`), or both. The
//! SDK's defaults of both functions change nothing. Use this overlay as the start for your own overlay.

use kaos_policy_sdk::types::{Claim, Descriptor, Plan, Refusal, Sample, Subject};
use kaos_policy_sdk::{Decode, Overlay, SubjectExt, amend, export_overlay, include_json, json, need};
use serde_json::{Value, json};

/// The kinds whose plans the overlay changes, with their API versions.
const KINDS: &[(&str, &str)] = &[
    ("kaos.tools/v1alpha1", "Agent"),
    ("kaos.tools/v1alpha1", "MCPServer"),
    ("kaos.tools/v1alpha1", "MemoryStore"),
    ("kaos.tools/v1alpha1", "ModelAPI"),
];

/// The settings that `settings.schema.json` declares. The host fills in the defaults and checks the values.
#[derive(Decode)]
#[serde(rename_all = "camelCase")]
struct Settings {
    registry: String,
}

/// The overlay.
pub struct Mirror;

impl Overlay for Mirror {
    fn describe() -> Descriptor {
        Descriptor {
            name: "mirror".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            claims: KINDS.iter().map(|(api_version, kind)| claim(api_version, kind)).collect(),
            settings_schema: include_json!("../settings.schema.json").to_owned(),
            ..Descriptor::default()
        }
    }

    fn amend(subject: &Subject, mut below: Plan) -> Result<Plan, Refusal> {
        let settings: Settings = subject.settings()?;
        amend::pod_templates(&mut below, |template| {
            for container in amend::containers(template) {
                if let Some(image) = container["image"].as_str() {
                    container["image"] = json!(amend::on_registry(image, &settings.registry));
                }
            }
        });
        Ok(below)
    }
}

/// Returns the claim on a kind. `emits` lists the types of the children that the overlay changes or adds.
fn claim(api_version: &str, kind: &str) -> Claim {
    Claim {
        primary: need::resource_type(api_version, kind),
        emits: vec![need::resource_type("apps/v1", "Deployment")],
        // The gate asks the overlay to amend a small Deployment for this object.
        samples: vec![Sample {
            name: "any".to_owned(),
            object: json::text(&object(api_version, kind)),
            ..Sample::default()
        }],
        ..Claim::default()
    }
}

fn object(api_version: &str, kind: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "any", "namespace": "default"}, "spec": {}})
}

export_overlay!(Mirror);

#[cfg(test)]
mod tests {
    use super::{KINDS, Mirror, object};
    use kaos_policy_sdk::types::Plan;
    use kaos_policy_sdk::{Overlay, plan, testing};
    use serde_json::{Value, json};

    fn amended(registry: &str) -> (Plan, Plan) {
        let spec = json!({"containers": [{"name": "main", "image": "ghcr.io/org/app:1"}],
            "initContainers": [{"name": "first", "image": "busybox"}]});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "any"},
            "spec": {"template": {"metadata": {"labels": {"app": "any"}}, "spec": spec}}});
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "any"}, "spec": {}});
        let below = plan::of(&[deployment.into(), service.into()], Vec::new());
        let (api_version, kind) = KINDS[0];
        let subject = testing::subject(&object(api_version, kind)).settings(&json!({"registry": registry})).build();
        (below.clone(), Mirror::amend(&subject, below).unwrap())
    }

    #[test]
    fn every_image_comes_from_the_registry() {
        let (below, plan) = amended("registry.example.com:5000");
        let deployment = testing::manifest(&plan, "Deployment");
        let images =
            |list: &str| deployment.at(&["spec", "template", "spec", list]).map(|list| list[0]["image"].clone());
        assert_eq!(images("containers"), Some(Value::from("registry.example.com:5000/org/app:1")));
        assert_eq!(images("initContainers"), Some(Value::from("registry.example.com:5000/library/busybox")));
        assert_eq!(plan.manifests[1], below.manifests[1]);
    }

    #[test]
    fn without_a_registry_the_plan_stays_as_it_is() {
        let (below, plan) = amended("");
        assert_eq!(plan, below);
    }
}
