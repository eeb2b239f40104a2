//! A policy that creates a Deployment and a Service for each `Website`.
//!
//! A policy consists of five pure functions. This policy is short enough to read in a minute. Use it as the start for
//! your own policy.

use kaos_policy_sdk::env::{self, Env};
use kaos_policy_sdk::plan::Child;
use kaos_policy_sdk::types::{Claim, Descriptor, EnvVar, Observation, Outcome, Plan, Refusal, Report, Sample, Subject};
use kaos_policy_sdk::{
    Decode, ObservationExt, Policy, SubjectExt, Violations, export_policy, include_json, json, names, need, plan,
};
use serde_json::{Value, json};

const API_VERSION: &str = "example.com/v1";
const CONTAINER: &str = "web";

/// The `spec` of a Website.
#[derive(Decode)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    title: String,
    replicas: Option<u32>,
    env: Vec<Value>,
}

impl Default for Spec {
    fn default() -> Self {
        Self { title: "Welcome".to_owned(), replicas: None, env: Vec::new() }
    }
}

/// The settings that `settings.schema.json` declares. The host fills in the defaults and checks the values.
#[derive(Decode)]
#[serde(rename_all = "camelCase")]
struct Settings {
    image: String,
    port: u16,
}

/// The policy.
pub struct Website;

impl Policy for Website {
    fn describe() -> Descriptor {
        Descriptor {
            name: "website".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            claims: vec![Claim {
                primary: need::resource_type(API_VERSION, "Website"),
                emits: vec![need::resource_type("apps/v1", "Deployment"), need::resource_type("v1", "Service")],
                samples: vec![Sample {
                    name: "minimal".to_owned(),
                    object: json::text(&website(&json!({"title": "Hello"}))),
                    ..Sample::default()
                }],
                ..Claim::default()
            }],
            settings_schema: include_json!("../settings.schema.json").to_owned(),
            ..Descriptor::default()
        }
    }

    fn map_env(subject: &Subject, base: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
        let spec: Spec = subject.object().get("spec")?;
        let mut env = Env::over(base);
        env.container(CONTAINER).set("SITE_TITLE", &spec.title, "spec.title").user(&spec.env, "spec.env")?;
        Ok(env.into_vars())
    }

    fn translate(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
        let object = subject.object();
        let spec: Spec = object.get("spec")?;
        let settings: Settings = subject.settings()?;
        let name = object.name();
        let mut wrong = Violations::new();
        wrong.require(!spec.title.trim().is_empty(), "spec.title", "must not be blank: give the site a title");
        if let Some(why) = names::dns1035_label(name) {
            wrong.add("metadata.name", format!("{why}, since the Service has the same name"));
        }
        wrong.into_result()?;

        let labels = json!({"app": "website", "website": name});
        let metadata = json!({"name": name, "namespace": object.namespace(), "labels": labels});
        let mut deployment = json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{
                        "name": CONTAINER,
                        "image": settings.image,
                        "env": env::to_json(&env, CONTAINER),
                        "ports": [{"name": "http", "containerPort": settings.port, "protocol": "TCP"}],
                    }]},
                },
            },
        });
        if let Some(replicas) = spec.replicas {
            deployment["spec"]["replicas"] = json!(replicas);
        }
        let service = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {
                "selector": labels,
                "ports": [{"name": "http", "port": settings.port, "targetPort": settings.port, "protocol": "TCP"}],
            },
        });
        let deployment = Child::new(deployment)
            .origin(format!("spec.template.spec.containers[name=\"{CONTAINER}\"].image"), "settings.image")
            .origin("spec.replicas", "spec.replicas");
        let service = Child::new(service).origin("spec.ports[0].port", "settings.port");
        Ok(plan::of(&[deployment, service], env))
    }

    fn assess(_subject: &Subject, seen: &Observation) -> Report {
        // While new pods start, pods of an older generation can still serve. The status does not count these older
        // pods.
        let rollout = seen.rollout("Deployment");
        // If a plan sets `gates_hold`, its gates can hold back a change while the pods of an earlier plan still serve.
        let ready = matches!(seen.outcome, Outcome::Applied | Outcome::Gated) && rollout.serves();
        let phase = match &seen.outcome {
            _ if ready => "Ready",
            Outcome::Refused(_) | Outcome::Failed(_) => "Failed",
            Outcome::Applied | Outcome::Gated => "Pending",
        };
        Report {
            ready,
            phase: phase.to_owned(),
            message: format!("{} replicas available", rollout.available),
            ..Report::default()
        }
    }
}

export_policy!(Website);

fn website(spec: &Value) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "Website", "metadata": {"name": "blog", "namespace": "default"}, "spec": spec,
    })
}

#[cfg(test)]
mod tests {
    use super::{Website, website};
    use kaos_policy_sdk::testing;
    use kaos_policy_sdk::types::{Outcome, Plan, Refusal};
    use kaos_policy_sdk::{Object, Policy};
    use serde_json::{Value, json};

    const SCHEMA: &str = include_str!("../settings.schema.json");

    fn plan(spec: &Value) -> Result<Plan, Refusal> {
        testing::plan::<Website>(&testing::subject(&website(spec)).defaults(SCHEMA).build())
    }

    #[test]
    fn the_title_reaches_the_container_and_says_where_it_came_from() {
        let plan = plan(&json!({"title": "Hello"})).unwrap();
        assert_eq!(testing::env_value(&plan.env, "web", "SITE_TITLE"), Some("Hello"));
        assert_eq!(plan.env[0].origin, "spec.title");
    }

    #[test]
    fn a_users_variable_wins() {
        let plan = plan(&json!({"title": "Hello", "env": [{"name": "SITE_TITLE", "value": "Mine"}]})).unwrap();
        assert_eq!(testing::env_value(&plan.env, "web", "SITE_TITLE"), Some("Mine"));
        assert_eq!(plan.env.len(), 1);
    }

    #[test]
    fn a_blank_title_is_refused_with_its_path() {
        let Err(Refusal::Invalid(violations)) = plan(&json!({"title": " "})) else {
            panic!("the policy accepted the Website")
        };
        assert_eq!(violations[0].path, "spec.title");
    }

    #[test]
    fn a_name_that_no_service_can_have_is_refused() {
        let mut object = website(&json!({"title": "Hello"}));
        object["metadata"]["name"] = json!("my.site");
        let subject = testing::subject(&object).defaults(SCHEMA).build();
        let Err(Refusal::Invalid(violations)) = testing::plan::<Website>(&subject) else {
            panic!("the policy accepted the Website")
        };
        assert_eq!(violations[0].path, "metadata.name");
    }

    #[test]
    fn the_service_selects_the_pods() {
        let plan = plan(&json!({"title": "Hello"})).unwrap();
        let pods = testing::manifest(&plan, "Deployment");
        let service: Object = testing::manifest(&plan, "Service");
        assert_eq!(service.at(&["spec", "selector"]), pods.at(&["spec", "template", "metadata", "labels"]));
    }

    /// Returns whether the policy reports the object as ready for a Deployment with this status.
    fn is_ready(generation: u64, status: &Value) -> bool {
        let subject = testing::subject(&website(&json!({}))).build();
        let live = json!({"apiVersion": "apps/v1", "kind": "Deployment",
                          "metadata": {"name": "blog", "generation": generation}, "status": status});
        let seen = testing::observation(Outcome::Applied).child(&live).build();
        Website::assess(&subject, &seen).ready
    }

    #[test]
    fn it_is_ready_when_an_up_to_date_replica_is_available() {
        let status = json!({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1});
        assert!(is_ready(2, &status));
        let subject = testing::subject(&website(&json!({}))).build();
        assert!(!Website::assess(&subject, &testing::observation(Outcome::Applied).build()).ready);
    }

    #[test]
    fn it_is_not_ready_while_only_old_replicas_are_available() {
        let status = json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 1});
        assert!(!is_ready(2, &status));
        let unseen = json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1});
        assert!(!is_ready(2, &unseen));
    }
}
