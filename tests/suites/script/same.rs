//! Checks that the template in JavaScript answers like the template in Rust, byte for byte.

use std::sync::Arc;

use kaos_operator::policies::{Candidate, ComponentOrigin, Loader, sample_cluster};
use kaos_policy::code::Code;
use kaos_policy::contract::{
    Child, Cluster, EnvVar, Found, Observation, Outcome, Plan, Reference, Refusal, Report, Subject,
};
use kaos_policy::digest::canonical;
use kaos_policy::gate::{self, CodeForm};
use kaos_policy::limits::Limits;
use kaos_policy::native_code;
use kaos_policy::policy::Policy;
use serde_json::{Value, json};

const SCRIPT: &str = include_str!("../../../guest-policies/template/javascript/policy.js");

fn script() -> Arc<Policy> {
    load(SCRIPT)
}

/// Loads a script as the operator does.
pub(super) fn load(text: &str) -> Arc<Policy> {
    let inner = gate::Candidate { form: CodeForm::Script, bytes: text.into(), ..gate::Candidate::default() };
    // Pretend that the script is embedded: the loader then compiles in this process, and needs no compile child.
    let origin = ComponentOrigin::Embedded;
    Loader::cached(sample_cluster()).unwrap().check(&Candidate { origin, inner }).result.unwrap()
}

fn subject(metadata: &Value, spec: &Value) -> Subject {
    let object = json!({"apiVersion": "example.com/v1", "kind": "Website", "metadata": metadata, "spec": spec});
    Subject {
        object: canonical(&object),
        found: Vec::new(),
        settings: canonical(&json!({"image": "nginx:test", "port": 8080})),
        cluster: Cluster::default(),
        applied: false,
        extra: "{}".to_owned(),
    }
}

type Planned = Result<(Vec<EnvVar>, Result<Plan, Refusal>), Refusal>;

fn planned(code: &dyn Code, subject: &Subject) -> Planned {
    let mut sandbox = code.open(&Limits::default()).unwrap();
    sandbox.begin(subject).unwrap();
    assert_eq!(sandbox.needs(&Vec::<Found>::new()).unwrap(), []);
    let env = sandbox.map_env(Vec::new()).unwrap()?;
    let plan = sandbox.translate(env.clone()).unwrap();
    Ok((env, plan))
}

fn assessed(code: &dyn Code, outcome: &Outcome, live: Option<&Value>) -> Report {
    let mut sandbox = code.open(&Limits::default()).unwrap();
    sandbox.begin(&subject(&json!({"name": "blog", "namespace": "default"}), &json!({}))).unwrap();
    let identity = Reference {
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        namespace: Some("default".into()),
        name: "blog".into(),
    };
    let children = vec![Child { identity, live: live.map(canonical) }];
    let (gates, env, notes) = (Vec::new(), Vec::new(), Vec::new());
    let seen = Observation { outcome: outcome.clone(), children, gates, env, notes, extra: "{}".to_owned() };
    sandbox.assess(&seen).unwrap()
}

#[test]
fn the_template_in_javascript_plans_like_the_template_in_rust() {
    let (script, native) = (script(), native_code!(kaos_policy_sdk, website_policy::Website));
    let blog = json!({"name": "blog", "namespace": "default"});
    for (metadata, spec) in [
        (blog.clone(), json!({})),
        (blog.clone(), json!({"title": "Hello"})),
        (blog.clone(), json!({"title": "$(HOME) is “here”", "replicas": 3})),
        (blog.clone(), json!({"title": "Hello", "env": [{"name": "SITE_TITLE", "value": "Mine"}, {"name": "B"}]})),
        (
            blog.clone(),
            json!({"env": [
                {"name": "A", "value": "$(B)"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "C", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": true}}},
                {"name": "D", "valueFrom": {"configMapKeyRef": {"name": "s", "key": "k"}}},
                {"name": "E", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            ]}),
        ),
        (blog.clone(), json!({"env": [{"value": "no name"}]})),
        (blog, json!({"title": " "})),
        (json!({"name": "my.site", "namespace": "default"}), json!({"title": "\t"})),
    ] {
        let subject = subject(&metadata, &spec);
        assert_eq!(planned(script.code(), &subject), planned(&native, &subject), "{metadata} {spec}");
    }
}

#[test]
fn the_template_in_javascript_assesses_like_the_template_in_rust() {
    let (script, native) = (script(), native_code!(kaos_policy_sdk, website_policy::Website));
    let live = |status: Value| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "blog", "generation": 2},
               "status": status})
    };
    let up = live(json!({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}));
    let old = live(json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 1}));
    let unseen = live(json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}));
    let outcomes = [
        Outcome::Applied,
        Outcome::Gated,
        Outcome::Failed("no".into()),
        Outcome::Refused(Refusal::Unsupported("no".into())),
    ];
    for live in [None, Some(&up), Some(&old), Some(&unseen)] {
        for outcome in &outcomes {
            assert_eq!(
                assessed(script.code(), outcome, live),
                assessed(&native, outcome, live),
                "{outcome:?} {live:?}"
            );
        }
    }
}
