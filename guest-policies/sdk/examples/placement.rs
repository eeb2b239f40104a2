//! A complete overlay that changes the plans of a default policy. The overlay adds tolerations and labels to the pods
//! of every `Agent`. The settings contain these tolerations and labels.

use std::collections::BTreeMap;

use kaos_policy_sdk::types::{Claim, Descriptor, Plan, Refusal, Sample, Subject};
use kaos_policy_sdk::{Decode, Overlay, SubjectExt, amend, export_overlay, need};
use serde_json::Value;

const SCHEMA: &str = r#"{"properties":{"labels":{"additionalProperties":{"type":"string"},"default":{},"type":"object"},
    "tolerations":{"default":[],"items":{"type":"object"},"type":"array"}},"type":"object"}"#;

#[derive(Decode)]
struct Settings {
    labels: BTreeMap<String, String>,
    tolerations: Vec<Value>,
}

/// The overlay.
pub struct Placement;

impl Overlay for Placement {
    fn describe() -> Descriptor {
        let sample = Sample {
            name: "any".to_owned(),
            object: r#"{"apiVersion":"kaos.tools/v1alpha1","kind":"Agent","metadata":{"name":"a","namespace":"b"}}"#
                .to_owned(),
            beside: Vec::new(),
        };
        let claim = Claim {
            primary: need::resource_type("kaos.tools/v1alpha1", "Agent"),
            emits: vec![need::resource_type("apps/v1", "Deployment")],
            samples: vec![sample],
            ..Claim::default()
        };
        Descriptor {
            name: "placement".to_owned(),
            version: "0.1.0".to_owned(),
            claims: vec![claim],
            settings_schema: SCHEMA.to_owned(),
            ..Descriptor::default()
        }
    }

    fn amend(subject: &Subject, mut below: Plan) -> Result<Plan, Refusal> {
        let Settings { labels, tolerations } = subject.settings()?;
        amend::children(&mut below, |child| {
            let Some(template) = amend::pod_template(&mut child.manifest) else { return };
            amend::add_labels(template, labels.iter().map(|(key, value)| (key.as_str(), value.as_str())));
            for toleration in &tolerations {
                amend::push(template, "tolerations", toleration.clone());
            }
            child.declare("spec.template.metadata.labels", "settings.labels");
            child.declare("spec.template.spec.tolerations", "settings.tolerations");
        });
        Ok(below)
    }
}

export_overlay!(Placement);

#[cfg(test)]
mod tests {
    use super::Placement;
    use kaos_policy_sdk::{Overlay, plan, testing};
    use serde_json::json;

    #[test]
    fn pods_get_the_labels_and_tolerations_of_the_settings() {
        let pod = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": []}});
        let deployment = json!({"kind": "Deployment", "metadata": {"name": "a"}, "spec": {"template": pod}});
        let settings = json!({"labels": {"team": "x"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]});
        let subject = testing::subject(&json!({})).settings(&settings).build();
        let plan = Placement::amend(&subject, plan::of(&[deployment.into()], Vec::new())).unwrap();
        let template = testing::manifest(&plan, "Deployment").at(&["spec", "template"]).cloned().unwrap();
        assert_eq!(template["metadata"]["labels"], json!({"app": "a", "team": "x"}));
        assert_eq!(template["spec"]["tolerations"], json!([{"key": "gpu", "operator": "Exists"}]));
        let from: Vec<_> = plan.origins.iter().map(|origin| origin.from.as_str()).collect();
        assert_eq!(from, ["settings.labels", "settings.tolerations"]);
    }
}
