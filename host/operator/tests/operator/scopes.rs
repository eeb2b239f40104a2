//! Tests that the gate, `policy conform`, `render` and a running operator agree on which types are cluster-scoped. This
//! decides whether a policy finds an object, and whether the policy needs a grant for the object.

use std::{collections::BTreeMap, sync::Arc};

use kaos_operator::{
    conform::{self, Inputs},
    input::parse,
    offline::{Brought, Started, StoredObjects, World},
    schema::{Crd, KnownCrds},
};
use kaos_policy::{
    code::Native,
    contract::{
        Answer, Claim, Cluster, Descriptor, EnvVar, Need, Observation, Plan, Reference, Refusal, Report, ResourceType,
        Sample, Scopes, Subject, Target,
    },
    digest::Digest,
    gate::{KnownServer, try_settings},
    limits::Limits,
    manifest::PolicyFile,
    policy::{Policy, Stack},
};
use serde_json::{Value, json};

use crate::{kite, stage::Stage};

const GRANTS: &str = "
grants:
  reads:
    - {apiVersion: v1, kind: Namespace, names: [t]}
    - {apiVersion: sky.io/v1, kind: Sky, names: [blue]}
";

/// The policy's needs and the expected answers: API version, kind, name and answer. Only Clouds and ConfigMaps are
/// namespaced.
const NEEDS: [(&str, &str, &str, &str); 6] = [
    ("v1", "Namespace", "t", "found"),
    ("v1", "Namespace", "default", "forbidden"),
    ("sky.io/v1", "Sky", "blue", "found"),
    ("sky.io/v1", "Sky", "red", "forbidden"),
    ("sky.io/v1", "Cloud", "low", "found"),
    ("v1", "ConfigMap", "low", "absent"),
];

/// Returns the objects in the cluster beside the claimed object.
fn beside() -> [Value; 4] {
    let cluster_scoped = |api_version: &str, kind: &str, name: &str| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    [
        cluster_scoped("v1", "Namespace", "t"),
        cluster_scoped("sky.io/v1", "Sky", "blue"),
        cluster_scoped("sky.io/v1", "Sky", "red"),
        json!({"apiVersion": "sky.io/v1", "kind": "Cloud", "metadata": {"name": "low", "namespace": "t"}}),
    ]
}

fn definition(kind: &str, plural: &str, scope: &str) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": format!("{plural}.sky.io")},
    "spec": {"group": "sky.io", "scope": scope, "names": {"plural": plural, "kind": kind},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

fn describe() -> Descriptor {
    let sample = Sample {
        name: "one".to_owned(),
        object: kite::object("a", &json!({})).to_string(),
        beside: beside().iter().map(ToString::to_string).collect(),
    };
    let mut reads: Vec<ResourceType> = NEEDS.map(|(version, kind, ..)| ResourceType::new(version, kind)).into();
    reads.sort();
    reads.dedup();
    let claim = Claim {
        primary: kite::of(),
        emits: vec![ResourceType::new("v1", "Service")],
        reads,
        wishes: Vec::new(),
        finalizer: None,
        samples: vec![sample],
        extra: "{}".to_owned(),
    };
    Descriptor {
        name: "scopes".to_owned(),
        version: "1.0.0".to_owned(),
        claims: vec![claim],
        settings_schema: r#"{"type":"object","properties":{}}"#.to_owned(),
        extra: "{}".to_owned(),
    }
}

fn needs(_: &Subject) -> Vec<Need> {
    let need = |(at, (api_version, kind, name, _)): (usize, (&str, &str, &str, &str))| {
        let (api_version, kind, name) = (api_version.to_owned(), kind.to_owned(), name.to_owned());
        let target = Target::Named(Reference { api_version, kind, namespace: None, name });
        Need { id: at.to_string(), target, fields: Vec::new(), optional: false }
    };
    NEEDS.into_iter().enumerate().map(need).collect()
}

/// Plans no children. Panics if an answer differs from the answer in `NEEDS`.
#[allow(clippy::unnecessary_wraps, reason = "the contract's signature")]
fn translate(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
    let answer = |answer: &Answer| match answer {
        Answer::Objects(objects) if objects.is_empty() => "absent",
        Answer::Objects(_) => "found",
        Answer::Secret(_) => "a Secret",
        Answer::Unserved => "unserved",
        Answer::Forbidden(_) => "forbidden",
    };
    let answers: Vec<&str> = subject.found.iter().map(|found| answer(&found.answer)).collect();
    assert_eq!(answers, NEEDS.map(|(.., wanted)| wanted), "the answers differ");
    Ok(Plan {
        manifests: Vec::new(),
        gates: Vec::new(),
        env,
        notes: Vec::new(),
        finalizer: None,
        kept: Vec::new(),
        gates_hold: false,
        origins: Vec::new(),
        extra: "{}".to_owned(),
    })
}

fn assess(_: &Subject, _: &Observation) -> Report {
    let (phase, message, fields) = ("Ready".to_owned(), String::new(), "{}".to_owned());
    Report { ready: true, phase, message, fields, conditions: Vec::new(), extra: "{}".to_owned() }
}

fn policy() -> Arc<Policy> {
    let code = Arc::new(Native { describe, needs, map_env: |_, base| Ok(base), translate, assess });
    let file = PolicyFile::parse(GRANTS).unwrap();
    Arc::new(Policy::admit(code, Digest::of(b"scopes"), &file, Limits::default()).unwrap())
}

fn stacks() -> BTreeMap<ResourceType, Stack> {
    [(kite::of(), Stack::single(policy()).unwrap())].into()
}

#[test]
fn gate_finds_what_the_cluster_finds() {
    try_settings(&policy(), &[], &Cluster::default(), &KnownServer::default()).unwrap();
}

#[test]
fn conform_finds_what_the_cluster_finds_with_and_without_crds() {
    let mut known = KnownCrds::default();
    for round in 0..2 {
        let inputs = Inputs {
            policy: &policy(),
            settings: &[],
            without_effect: &[],
            cluster: &Cluster::default(),
            crds: &known,
            files: &[],
            objects: 0,
            seed: 0,
            only: None,
        };
        let findings = conform::check(&inputs).unwrap();
        let failed: Vec<_> = findings.failed().collect();
        assert!(failed.is_empty(), "round {round}: {failed:?}");
        known.add(Crd::new(&definition("Sky", "skies", "Cluster")).unwrap());
        known.add(Crd::new(&definition("Cloud", "clouds", "Namespaced")).unwrap());
    }
}

#[test]
fn render_finds_what_the_cluster_finds() {
    let file = std::env::temp_dir().join(format!("kaos-scopes-{}.yaml", std::process::id()));
    let objects: Vec<Value> = [kite::object("a", &json!({}))].into_iter().chain(beside()).collect();
    let text: Vec<String> = objects.iter().map(ToString::to_string).collect();
    let text = text.join("\n");
    std::fs::write(&file, text).unwrap();
    let paths = [file.display().to_string()];
    let sources = kaos_operator::input::InputPaths { paths: &paths, recursive: false, namespace: "t" };
    let (documents, errors) = kaos_operator::input::read(sources, &Scopes::default());
    std::fs::remove_file(&file).unwrap();
    assert!(errors.is_empty(), "{errors:?}");
    let started = Started::default();
    let objects = documents.iter().map(|document| &document.object);
    let brought = Brought::new(&stacks(), &[], &started, |_| true, objects).unwrap();
    let stored = StoredObjects::new(&documents, &Scopes::default());
    let entry = World::new(&stored, &brought, &|_| None).entry(0).unwrap().unwrap();
    assert!(entry.rendered.planned().is_some(), "{:?}", entry.rendered.verdict);
}

#[test]
fn object_of_a_known_namespaced_type_is_in_the_default_namespace() {
    let text = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "low"}}).to_string();
    let (documents, _) = parse(&"a.json".into(), &text, "t");
    assert_eq!(documents[0].identity.namespace.as_deref(), Some("t"));
}

#[tokio::test(start_paused = true)]
async fn cluster_finds_these_objects() {
    let definitions = [definition("Sky", "skies", "Cluster"), definition("Cloud", "clouds", "Namespaced")];
    let objects: Vec<Value> = definitions.into_iter().chain(beside()).collect();
    let stage = Stage::start_with(stacks(), &objects).await;
    stage.apply(&kite::object("a", &json!({}))).await;
    stage.until_ready("a").await;
}
