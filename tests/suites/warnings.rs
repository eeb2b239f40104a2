//! Checks that the chart's admission policies warn only about values that the default policies refuse or ignore. Each
//! CEL rule repeats a check of a policy, so this test compares the rule with the policy. The suite `e2e` checks that an
//! API server sends these warnings.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kaos_policy::contract::{Cluster, Refusal};
use kaos_policy::lookup::Fixed;
use kaos_policy::policy::Stack;
use kaos_policy::render::{Renderer, Verdict};
use kaos_tests::{case, policies};
use kube_cel::{VapEvaluator, VapExpression};
use serde_json::{Value, json};

const KINDS: [(&str, &str); 4] =
    [("agents", "Agent"), ("mcpservers", "MCPServer"), ("memorystores", "MemoryStore"), ("modelapis", "ModelAPI")];

/// Returns the path and the expression of each CEL rule for a resource. The expression is true for an object without
/// the mistake.
fn rules(resource: &str) -> Vec<(String, VapExpression)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/helm/kaos-operator/files/warnings.yaml");
    let all: Value = serde_saphyr::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(all.as_object().unwrap().len(), KINDS.len());
    let rule = |rule: &Value| {
        let text = |field: &str| rule[field].as_str().unwrap().to_owned();
        // Remove `dyn`, which the evaluator in this test does not support. `dyn` does not change a value: it only tells
        // the API server's type checker to skip a field without a schema.
        let expression = text("valid").replace("dyn(object)", "object");
        (text("path"), VapExpression { expression, message: None, message_expression: None })
    };
    all[resource].as_array().unwrap().iter().map(rule).collect()
}

/// Returns the paths about which a cluster would warn.
fn warned(resource: &str, object: &Value) -> BTreeSet<String> {
    let (paths, expressions): (Vec<_>, Vec<_>) = rules(resource).into_iter().unzip();
    let results = VapEvaluator::builder().object(object.clone()).build().evaluate(&expressions);
    let wrong = paths.into_iter().zip(results).filter(|(_, result)| !result.passed);
    wrong
        .map(|(path, result)| {
            // Fail on an error of the evaluation, because a correct rule can be evaluated for every object.
            assert!(
                result.message.as_deref().is_none_or(|said| !said.contains("rror")),
                "{path}: {result:?}\n{object:#}"
            );
            path
        })
        .collect()
}

fn renderers() -> BTreeMap<String, Renderer> {
    let policies = policies::native().unwrap();
    let renderer = |policy| Renderer::new(&Stack::single(policy).unwrap(), &[], Cluster::default()).unwrap();
    policies.into_iter().map(|policy| (policy.descriptor().claims[0].primary.kind.clone(), renderer(policy))).collect()
}

/// Returns the paths that the policy names in its refusal or in its notes.
fn complained(renderers: &BTreeMap<String, Renderer>, object: &Value) -> Vec<String> {
    // Create the ModelAPI of an Agent or a MemoryStore. Without the ModelAPI, the object waits, and the policy reports
    // nothing else.
    let spec = &object["spec"];
    let model_api = spec.get("modelAPI").unwrap_or(&spec["models"]["summarization"]["modelAPI"]);
    let model = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI",
        "metadata": {"name": model_api, "namespace": object["metadata"]["namespace"]},
        "spec": {"mode": "Proxy", "proxyConfig": {"models": ["*"]}}, "status": {"ready": true, "endpoint": "http://llm"}});
    let rendered = renderers[object["kind"].as_str().unwrap()].render(object, &Fixed::new([model])).unwrap();
    let mut paths: Vec<String> = rendered.notes().iter().filter_map(|note| note.path.clone()).collect();
    match &rendered.verdict {
        Verdict::Refused(Refusal::Invalid(violations)) => paths.extend(violations.iter().map(|it| it.path.clone())),
        Verdict::Refused(_) | Verdict::Planned(_) => {}
        Verdict::Failed(failure) => panic!("{failure}\n{object:#}"),
    }
    paths
}

fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": name, "namespace": "team"}, "spec": spec})
}

/// Returns the resource and the path of each CEL rule, with an object that breaks this rule.
fn broken() -> Vec<(&'static str, &'static str, Value)> {
    let agent = |more: Value| {
        let mut spec = json!({"modelAPI": "llm", "model": "m"});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        object("Agent", "a", &spec)
    };
    let memory = |memory: Value| agent(json!({"config": {"memory": memory}}));
    let long = "a".repeat(58);
    let plain = json!({"modelAPI": "llm", "model": "m"});
    let proxy = json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}});
    let server = json!({"runtime": "custom", "container": {"image": "i"}});
    let key = json!({"mode": "Proxy", "proxyConfig": {"models": ["*"],
        "apiKey": {"valueFrom": {"secretKeyRef": {"key": "k"}}}}});
    let store = |summarization: &str, embedding: &str, storage: Value| {
        let model = |api: &str| json!({"modelAPI": api, "model": "m"});
        let models = json!({"summarization": model(summarization), "embedding": model(embedding)});
        json!({"storage": storage, "models": models})
    };
    let local = || json!({"type": "local"});
    let nameless = json!({"type": "external", "external": {"connectionSecretRef": {"key": "dsn"}}});
    let of_store = |spec: Value| object("MemoryStore", "s", &spec);
    let with = |more: Value| {
        let mut spec = proxy.clone();
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        object("ModelAPI", "m", &spec)
    };
    let config = |config: Value| with(json!({"proxyConfig": {"models": ["*"], "configYaml": config}}));
    let api_key = |key: Value| with(json!({"proxyConfig": {"models": ["*"], "apiKey": key}}));
    vec![
        ("memorystores", "metadata.name", object("MemoryStore", &long[6..], &store("llm", "llm", local()))),
        ("memorystores", "spec.models.summarization.modelAPI", of_store(store("A B", "llm", local()))),
        ("memorystores", "spec.models.embedding.modelAPI", of_store(store("llm", "A B", local()))),
        ("memorystores", "spec.storage.external.connectionSecretRef", of_store(store("llm", "llm", nameless))),
        ("agents", "metadata.name", object("Agent", &long, &plain)),
        ("agents", "metadata.name", object("Agent", "a.b", &plain)),
        ("agents", "spec.modelAPI", agent(json!({"modelAPI": "A B"}))),
        ("agents", "spec.mcpServers", agent(json!({"mcpServers": ["good", "Bad"]}))),
        ("agents", "spec.agentNetwork.access", agent(json!({"agentNetwork": {"access": ["b", "a"]}}))),
        ("agents", "spec.config.memory.type", memory(json!({"type": "remote"}))),
        ("agents", "spec.config.memory.memoryStore", memory(json!({"type": "local", "memoryStore": "s"}))),
        ("agents", "spec.config.memory.tools", memory(json!({"tools": "all"}))),
        ("agents", "spec.config.memory.maxReadScope", memory(json!({"type": "local", "maxReadScope": "user"}))),
        (
            "agents",
            "spec.harness.workspace.repoURL",
            agent(json!({"harness": {"runtime": "pi", "workspace": {"repoURL": "git@example.com:a/b"}}})),
        ),
        (
            "agents",
            "spec.harness.workspace.repoURL",
            agent(json!({"harness": {"runtime": "pi", "workspace": {"repoURL": "https://token@example.com/a"}}})),
        ),
        ("modelapis", "metadata.name", object("ModelAPI", &long[3..], &proxy)),
        ("modelapis", "spec.proxyConfig", object("ModelAPI", "m", &json!({"mode": "Proxy"}))),
        ("modelapis", "spec.hostedConfig", object("ModelAPI", "m", &json!({"mode": "Hosted"}))),
        (
            "modelapis",
            "spec.hostedConfig",
            object("ModelAPI", "m", &json!({"mode": "Hosted", "hostedConfig": {"model": ""}})),
        ),
        ("modelapis", "spec.proxyConfig.apiKey.valueFrom.secretKeyRef", object("ModelAPI", "m", &key)),
        (
            "modelapis",
            "spec.proxyConfig",
            object(
                "ModelAPI",
                "m",
                &json!({"mode": "Hosted", "hostedConfig": {"model": "m"}, "proxyConfig": {"models": ["*"]}}),
            ),
        ),
        ("modelapis", "spec.hostedConfig", with(json!({"hostedConfig": {"model": "m"}}))),
        ("modelapis", "spec.serverConfig", with(json!({"serverConfig": {"model": "m"}}))),
        ("modelapis", "spec.proxyConfig.configYaml", config(json!({"fromSecretKeyref": {"name": "n", "key": "k"}}))),
        ("modelapis", "spec.proxyConfig.configYaml", config(json!({"fromString": "model_list: []", "x": 1}))),
        (
            "modelapis",
            "spec.proxyConfig.configYaml.fromSecretKeyRef",
            config(json!({"fromString": "model_list: []", "fromSecretKeyRef": {"name": "n", "key": "k"}})),
        ),
        ("modelapis", "spec.proxyConfig.apiKey", api_key(json!({}))),
        ("modelapis", "spec.proxyConfig.apiKey", api_key(json!({"value": "", "valueFrom": {}}))),
        (
            "modelapis",
            "spec.proxyConfig.apiKey.valueFrom.configMapKeyRef",
            api_key(json!({"valueFrom": {"secretKeyRef": {"name": "n", "key": "k"},
                "configMapKeyRef": {"name": "n", "key": "k"}}})),
        ),
        ("mcpservers", "metadata.name", object("MCPServer", &long[4..], &server)),
        ("mcpservers", "spec.container.image", object("MCPServer", "s", &json!({"runtime": "custom"}))),
        ("mcpservers", "spec.runtime", object("MCPServer", "s", &json!({"type": "python-runtime"}))),
    ]
}

#[test]
fn every_warning_rule_matches_a_complaint_of_the_policy_at_its_field() {
    let renderers = renderers();
    let mut shown = BTreeSet::new();
    for (resource, path, object) in broken() {
        assert_eq!(warned(resource, &object), BTreeSet::from([path.to_owned()]), "{object:#}");
        let complained = complained(&renderers, &object);
        assert!(complained.iter().any(|at| at.starts_with(path)), "{path}: {complained:?}\n{object:#}");
        shown.insert((resource, path.to_owned()));
    }
    for (resource, _) in KINDS {
        for (path, _) in rules(resource) {
            assert!(shown.contains(&(resource, path.clone())), "{resource}: nothing breaks the rule about {path}");
        }
    }
}

#[test]
fn accepted_objects_get_no_warning() {
    let renderers = renderers();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut objects: Vec<Value> = case::all().unwrap().into_iter().flat_map(|case| case.input).collect();
    for file in ["docs/examples/team.yaml", "docs/examples/external-model.yaml"] {
        objects.extend(case::documents(&folder.join(file)).unwrap());
    }
    let mut taken = 0;
    for (resource, kind) in KINDS {
        for object in objects.iter().filter(|object| object["kind"] == kind) {
            let warned = warned(resource, object);
            let complained = complained(&renderers, object);
            for path in &warned {
                assert!(complained.iter().any(|at| at.starts_with(path)), "{path}: {complained:?}\n{object:#}");
            }
            taken += usize::from(warned.is_empty());
        }
    }
    assert!(taken > 150, "only {taken} objects are taken");
}
