//! A complete overlay that changes the plans of a default policy. The overlay adds a container to the pods of every
//! `Agent`, and a ConfigMap that the container reads. Two annotations of the Agent ask for more: a volume with the logs
//! of the node, and a Secret with a token. The guard allows this volume and this Secret only with grants in
//! `policy.yaml`.

use kaos_policy_sdk::env::{self, Env};
use kaos_policy_sdk::types::{Claim, Descriptor, Plan, Refusal, Sample, Subject};
use kaos_policy_sdk::{Decode, Overlay, SubjectExt, amend, export_overlay, need};
use serde_json::json;

const CONTAINER: &str = "forwarder";
/// The annotation that asks for the logs of the node.
const NODE_LOGS: &str = "example.org/node-logs";
/// The annotation that contains the name of the Secret with the token.
const TOKEN: &str = "example.org/token";
const SCHEMA: &str = r#"{"properties":{"image":{"default":"fluent/fluent-bit:4.0","type":"string"},
    "target":{"default":"http://logs.logging:3100","type":"string"}},"type":"object"}"#;

#[derive(Decode)]
struct Settings {
    image: String,
    target: String,
}

/// The overlay.
pub struct Sidecar;

impl Overlay for Sidecar {
    fn describe() -> Descriptor {
        let sample = Sample {
            name: "any".to_owned(),
            object: r#"{"apiVersion":"kaos.tools/v1alpha1","kind":"Agent","metadata":{"name":"a","namespace":"b"}}"#
                .to_owned(),
            beside: Vec::new(),
        };
        let claim = Claim {
            primary: need::resource_type("kaos.tools/v1alpha1", "Agent"),
            emits: vec![need::resource_type("apps/v1", "Deployment"), need::resource_type("v1", "ConfigMap")],
            samples: vec![sample],
            ..Claim::default()
        };
        Descriptor {
            name: "sidecar".to_owned(),
            version: "0.1.0".to_owned(),
            claims: vec![claim],
            settings_schema: SCHEMA.to_owned(),
            ..Descriptor::default()
        }
    }

    fn amend(subject: &Subject, mut below: Plan) -> Result<Plan, Refusal> {
        let Settings { image, target } = subject.settings()?;
        let object = subject.object();
        let name = format!("{}-forwarder", object.name());
        let mut env = Env::over(core::mem::take(&mut below.env));
        env.container(CONTAINER).set("TARGET", target, "settings.target");
        below.env = env.into_vars();
        let container = json!({
            "name": CONTAINER,
            "image": image,
            "env": env::to_json(&below.env, CONTAINER),
            "volumeMounts": [{"name": "forwarder", "mountPath": "/etc/forwarder"}],
        });
        amend::children(&mut below, |child| {
            let Some(template) = amend::pod_template(&mut child.manifest) else { return };
            amend::push(template, "containers", container.clone());
            amend::push(template, "volumes", json!({"name": "forwarder", "configMap": {"name": name}}));
            if object.annotation(NODE_LOGS).is_some() {
                amend::push(template, "volumes", json!({"name": "node", "hostPath": {"path": "/var/log"}}));
            }
            if let Some(secret) = object.annotation(TOKEN) {
                amend::push(template, "volumes", json!({"name": "token", "secret": {"secretName": secret}}));
            }
            child.declare(format!("spec.template.spec.containers[name=\"{CONTAINER}\"].image"), "settings.image");
        });
        let metadata = json!({"name": name, "namespace": object.namespace()});
        let data = json!({"forwarder.conf": "[INPUT]\n    Name tail\n"});
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
        amend::add(&mut below, config);
        Ok(below)
    }
}

export_overlay!(Sidecar);

#[cfg(test)]
mod tests {
    use super::Sidecar;
    use kaos_policy_sdk::{Overlay, plan, testing};
    use serde_json::json;

    #[test]
    fn the_pod_gets_a_container_with_its_variable_and_its_file() {
        let pod = json!({"spec": {"containers": [{"name": "agent"}]}});
        let deployment = json!({"kind": "Deployment", "metadata": {"name": "a"}, "spec": {"template": pod}});
        let settings = json!({"image": "i:1", "target": "http://t"});
        let subject = testing::subject(&json!({"metadata": {"name": "a"}})).settings(&settings).build();
        let plan = Sidecar::amend(&subject, plan::of(&[deployment.into()], Vec::new())).unwrap();
        let pod = testing::manifest(&plan, "Deployment").at(&["spec", "template", "spec"]).cloned().unwrap();
        assert_eq!(pod["containers"][1]["env"], json!([{"name": "TARGET", "value": "http://t"}]));
        assert_eq!(pod["volumes"].as_array().unwrap().len(), 1);
        assert_eq!(testing::env_value(&plan.env, "forwarder", "TARGET"), Some("http://t"));
        assert_eq!(testing::manifest(&plan, "ConfigMap").name(), "a-forwarder");
    }
}
