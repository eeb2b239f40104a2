//! Checks that the policy `queue` in JavaScript answers like the policy `queue` in Rust, byte for byte. The test
//! compares their descriptions, and their answers for valid, invalid and waiting objects.

use std::sync::Arc;

use kaos_policy::code::Code;
use kaos_policy::contract::{
    Answer, Blocker, Child, Cluster, Descriptor, EnvVar, Found, Need, Note, Observation, Outcome, Plan, Reference,
    Refusal, Report, SecretFacts, Subject, Target,
};
use kaos_policy::digest::canonical;
use kaos_policy::limits::Limits;
use kaos_policy::native_code;
use kaos_policy::policy::Policy;
use serde_json::{Value, json};

use super::same::load;

const SCRIPT: &str = include_str!("../../../guest-policies/queue/policy.js");
const SCHEMA: &str = include_str!("../../../guest-policies/queue/settings.schema.json");

fn script() -> Arc<Policy> {
    load(SCRIPT)
}

/// Returns complete settings: the settings in `own`, and the schema's defaults for all other settings.
fn settings(own: &Value) -> Value {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let properties = schema["properties"].as_object().unwrap().iter();
    let mut settings: Value = properties.map(|(name, property)| (name.clone(), property["default"].clone())).collect();
    for (name, value) in own.as_object().unwrap() {
        settings[name] = value.clone();
    }
    settings
}

fn subject(object: &Value, own: &Value) -> Subject {
    Subject {
        object: canonical(object),
        found: Vec::new(),
        settings: canonical(&settings(own)),
        cluster: Cluster { domain: "corp.local".into(), ..Cluster::default() },
        applied: false,
        extra: "{}".to_owned(),
    }
}

fn queue(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Queue", "metadata": {"name": "orders", "namespace": "shop"},
           "spec": spec})
}

/// Returns an answer to each need: the parameter `login` is the answer for a Secret, and the parameter `extra` for a
/// ConfigMap.
fn answered(needs: &[Need], login: &Answer, extra: &Answer) -> Vec<Found> {
    let of = |need: &Need| match &need.target {
        Target::Named(on) if on.kind == "Secret" => login.clone(),
        _ => extra.clone(),
    };
    needs.iter().map(|need| Found { id: need.id.clone(), answer: of(need) }).collect()
}

/// The answers of a policy to all calls of a pass.
#[derive(Debug, PartialEq)]
struct Pass {
    needs: Vec<Need>,
    planned: Result<(Vec<EnvVar>, Result<Plan, Refusal>), Refusal>,
    reports: Vec<Report>,
}

fn pass(code: &dyn Code, subject: &Subject, login: &Answer, extra: &Answer) -> Pass {
    let mut sandbox = code.open(&Limits::default()).unwrap();
    sandbox.begin(subject).unwrap();
    let needs = sandbox.needs(&[]).unwrap();
    let found = answered(&needs, login, extra);
    assert_eq!(sandbox.needs(&found).unwrap(), needs);
    let planned = match sandbox.map_env(Vec::new()).unwrap() {
        Ok(env) => Ok((env.clone(), sandbox.translate(env).unwrap())),
        Err(refusal) => Err(refusal),
    };
    let (gates, notes) = match &planned {
        Ok((_, Ok(plan))) => (plan.gates.clone(), plan.notes.clone()),
        _ => (Vec::new(), Vec::new()),
    };
    let refused = |refusal: &Refusal| Outcome::Refused(refusal.clone());
    let own = match &planned {
        Ok((_, Ok(_))) => Outcome::Gated,
        Ok((_, Err(refusal))) | Err(refusal) => refused(refusal),
    };
    let blocker = Blocker {
        on: Reference { api_version: "v1".into(), kind: "Secret".into(), namespace: None, name: "login".into() },
        reason: "NotFound".into(),
        message: "Secret login not found".into(),
    };
    let outcomes = [
        Outcome::Applied,
        own,
        Outcome::Failed("no".into()),
        refused(&Refusal::Unsupported("never".into())),
        refused(&Refusal::Waiting(vec![blocker])),
    ];
    let mut reports = Vec::new();
    for outcome in &outcomes {
        for live in [None, Some([3, 3, 3]), Some([3, 1, 3]), Some([1, 1, 0])] {
            let seen = observation(outcome, live, &gates, &notes);
            reports.push(sandbox.assess(&seen).unwrap());
        }
    }
    Pass { needs, planned, reports }
}

/// Returns an observation of a StatefulSet with these numbers of pods: all, updated, available.
fn observation(outcome: &Outcome, live: Option<[u64; 3]>, gates: &[Blocker], notes: &[Note]) -> Observation {
    let live = live.map(|[replicas, updated, available]| {
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "orders", "generation": 2},
               "spec": {"replicas": 3}, "status": {"observedGeneration": 2, "replicas": replicas,
                   "updatedReplicas": updated, "readyReplicas": available, "availableReplicas": available}})
    });
    let identity = |api_version: &str, kind: &str| Reference {
        api_version: api_version.into(),
        kind: kind.into(),
        namespace: Some("shop".into()),
        name: "orders".into(),
    };
    let children = vec![
        Child { identity: identity("v1", "Service"), live: None },
        Child { identity: identity("apps/v1", "StatefulSet"), live: live.as_ref().map(canonical) },
    ];
    Observation {
        outcome: outcome.clone(),
        children,
        gates: gates.to_vec(),
        env: Vec::new(),
        notes: notes.to_vec(),
        extra: "{}".to_owned(),
    }
}

fn secret(keys: &[&str]) -> Answer {
    let keys = keys.iter().map(|&key| key.to_owned()).collect();
    Answer::Secret(SecretFacts { present: true, keys, digest: "d1".to_owned() })
}

fn config(data: &Value) -> Answer {
    Answer::Objects(vec![canonical(&json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data}))])
}

/// Compares both policies on one Queue.
fn compare(object: &Value, own: &Value, login: &Answer, extra: &Answer) -> Pass {
    let (script, native) = (script(), native_code!(kaos_policy_sdk, queue_policy::Queue));
    let subject = subject(object, own);
    let (one, other) = (pass(script.code(), &subject, login, extra), pass(&native, &subject, login, extra));
    assert_eq!(one, other, "{object} {login:?} {extra:?}");
    one
}

#[test]
fn the_queue_in_javascript_describes_itself_like_the_queue_in_rust() {
    let native = native_code!(kaos_policy_sdk, queue_policy::Queue);
    let plain = |mut descriptor: Descriptor| {
        let canonical_of = |text: &str| canonical(&serde_json::from_str::<Value>(text).unwrap());
        descriptor.settings_schema = canonical_of(&descriptor.settings_schema);
        for sample in descriptor.claims.iter_mut().flat_map(|claim| &mut claim.samples) {
            sample.object = canonical_of(&sample.object);
            sample.beside = sample.beside.iter().map(|text| canonical_of(text)).collect();
        }
        descriptor
    };
    assert_eq!(plain(script().descriptor().clone()), plain((native.describe)()));
}

#[test]
fn the_queue_in_javascript_answers_like_the_queue_in_rust_for_every_secret_and_config_map() {
    let object = queue(&json!({"replicas": 3, "credentialsSecret": "login", "configFrom": "extra",
        "storage": {"size": "10Gi", "className": "fast"}, "image": "nats:mine", "maxMessages": 5,
        "env": [{"name": "A", "value": "$(POD_NAME)"}, {"name": "QUEUE_PASSWORD", "value": "mine"}]}));
    let absent = Answer::Secret(SecretFacts { present: false, keys: Vec::new(), digest: String::new() });
    let forbidden = Answer::Forbidden("no right".to_owned());
    for login in [secret(&["password", "user"]), secret(&["user"]), absent, forbidden.clone()] {
        for extra in [
            config(&json!({"extra.conf": "max_payload: 2MB\n"})),
            config(&json!({"other": "x"})),
            Answer::Objects(Vec::new()),
            Answer::Unserved,
            forbidden.clone(),
        ] {
            let Ok((_, Ok(plan))) = compare(&object, &json!({}), &login, &extra).planned else {
                panic!("no plan for {login:?} {extra:?}")
            };
            assert_eq!(plan.manifests.len(), 4);
        }
    }
}

#[test]
fn the_queue_in_javascript_answers_like_the_queue_in_rust_for_right_and_wrong_specs() {
    let (login, extra) = (secret(&["password"]), Answer::Objects(Vec::new()));
    for spec in [
        json!({}),
        Value::Null,
        json!({"replicas": null, "storage": null, "env": null, "image": null}),
        json!({"replicas": 2, "maxMessages": 0, "credentialsSecret": "No Name", "configFrom": ""}),
        json!({"replicas": 5, "storage": {"className": null}, "other": 1}),
        json!({"maxMessages": 1_000_001}),
        json!({"replicas": -1}),
        json!({"replicas": 1.5}),
        json!({"replicas": 5_000_000_000_u64}),
        json!({"replicas": "3"}),
        json!({"image": {}, "replicas": true}),
        json!({"storage": {"size": 10}}),
        json!({"storage": []}),
        json!({"env": {}}),
        json!({"env": [{"value": "no name"}]}),
        json!({"credentialsSecret": ["a"]}),
        json!(5),
        json!([]),
    ] {
        compare(&queue(&spec), &json!({"logLevel": "debug", "maxMessages": 7}), &login, &extra);
    }
    for name in ["my.queue", "Q", "q", &"q".repeat(53), &"q".repeat(70)] {
        let mut object = queue(&json!({}));
        object["metadata"]["name"] = json!(name);
        compare(&object, &json!({"logLevel": "trace", "image": "nats:test"}), &login, &extra);
    }
}
