//! A complete policy. The policy turns a `Banner` into a ConfigMap with the Banner's text.

use kaos_policy_sdk::plan::Child;
use kaos_policy_sdk::types::{Claim, Descriptor, EnvVar, Observation, Outcome, Plan, Refusal, Report, Sample, Subject};
use kaos_policy_sdk::{Policy, SubjectExt, condition, export_policy, json, need, plan, refusal};
use serde_json::json;

/// The policy.
pub struct Banner;

impl Policy for Banner {
    fn describe() -> Descriptor {
        let banner = json!({
            "apiVersion": "example.org/v1", "kind": "Banner",
            "metadata": {"name": "hello", "namespace": "default"}, "spec": {"text": "hello"},
        });
        let claim = Claim {
            primary: need::resource_type("example.org/v1", "Banner"),
            emits: vec![need::resource_type("v1", "ConfigMap")],
            samples: vec![Sample { name: "hello".to_owned(), object: json::text(&banner), ..Sample::default() }],
            ..Claim::default()
        };
        Descriptor {
            name: "banner".to_owned(),
            version: "0.1.0".to_owned(),
            claims: vec![claim],
            settings_schema: r#"{"type":"object"}"#.to_owned(),
            ..Descriptor::default()
        }
    }

    fn translate(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
        let object = subject.object();
        let Some(text) = object.str_at(&["spec", "text"]) else {
            return Err(refusal::invalid("spec.text", "is required; say what the banner shows"));
        };
        let metadata = json!({"name": object.name(), "namespace": object.namespace()});
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}});
        Ok(plan::of(&[Child::new(config).origin("data.text", "spec.text")], env))
    }

    fn assess(_: &Subject, seen: &Observation) -> Report {
        let ready = seen.outcome == Outcome::Applied;
        let conditions = if ready { vec![condition::yes("Shown", "Applied", "the banner is up")] } else { Vec::new() };
        let phase = if ready { "Ready" } else { "Pending" }.to_owned();
        Report { ready, phase, message: String::new(), fields: json::empty(), conditions, extra: json::empty() }
    }
}

export_policy!(Banner);

#[cfg(test)]
mod tests {
    use super::Banner;
    use kaos_policy_sdk::types::{Outcome, Refusal};
    use kaos_policy_sdk::{Object, Policy, testing};
    use serde_json::{Value, json};

    #[test]
    fn a_banner_becomes_a_config_map_with_its_text() {
        let banner = Object::parse(&Banner::describe().claims[0].samples[0].object);
        let plan = testing::plan::<Banner>(&testing::subject(banner.value()).build()).unwrap();
        assert_eq!(testing::manifest(&plan, "ConfigMap").str_at(&["data", "text"]), Some("hello"));
    }

    #[test]
    fn a_banner_without_a_text_is_refused_with_the_path() {
        let refused = testing::plan::<Banner>(&testing::subject(&json!({"spec": Value::Null})).build());
        assert!(matches!(refused, Err(Refusal::Invalid(wrong)) if wrong[0].path == "spec.text"));
    }

    #[test]
    fn a_banner_is_ready_as_soon_as_it_is_applied() {
        let subject = testing::subject(&json!({})).build();
        assert!(Banner::assess(&subject, &testing::observation(Outcome::Applied).build()).ready);
        assert!(!Banner::assess(&subject, &testing::observation(Outcome::Gated).build()).ready);
    }
}
