//! Tests what the kind `Agent` guarantees to users. Each guarantee has its own test.

#![allow(clippy::panic, clippy::unwrap_used)] // helpers of tests; a failure must end the test

use kaos_agent::{Agent, Settings};
use kaos_policy_sdk::types::{EnvSource, EnvVar, Outcome, Plan, Refusal, Subject, Truth};
use kaos_policy_sdk::{Object, Policy, testing};
use kaos_workload::schema::{leaves, with};
use serde_json::{Value, json};

fn api(status: &Value) -> Value {
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "metadata": {"name": "llm", "namespace": "ns"},
           "spec": {"mode": "Proxy", "proxyConfig": {"models": ["*"]}}, "status": status})
}

fn up() -> Value {
    api(&json!({"ready": true, "endpoint": "http://llm"}))
}

fn agent(spec: &Value) -> Value {
    let mut all = json!({"modelAPI": "llm", "model": "m"});
    for (field, value) in spec.as_object().unwrap() {
        all[field.as_str()] = value.clone();
    }
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "metadata": {"name": "a", "namespace": "ns"}, "spec": all})
}

fn subject(object: &Value, beside: &[Value]) -> Subject {
    testing::subject(object).beside::<Agent>(beside).build()
}

fn plan(spec: &Value) -> Plan {
    testing::plan::<Agent>(&subject(&agent(spec), &[up()])).unwrap()
}

fn refused(spec: &Value) -> String {
    match testing::plan::<Agent>(&subject(&agent(spec), &[up()])) {
        Err(Refusal::Invalid(violations)) => violations[0].path.clone(),
        other => panic!("{spec} must be refused, not {other:?}"),
    }
}

fn env<'a>(plan: &'a Plan, name: &str) -> Option<&'a str> {
    testing::env_value(&plan.env, "agent", name)
}

fn container(plan: &Plan) -> Value {
    testing::manifest(plan, "Deployment").at(&["spec", "template", "spec", "containers"]).unwrap()[0].clone()
}

fn deployment(plan: &Plan, available: i64) -> Value {
    let mut deployment = testing::manifest(plan, "Deployment").value().clone();
    deployment["metadata"]["generation"] = json!(1);
    deployment["status"] = json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": available, "availableReplicas": available});
    deployment
}

#[test]
fn older_fields_work_and_each_gets_a_note() {
    let older = json!({"model": null, "resources": {"limits": {"cpu": "1"}}, "config": {
        "env": [{"name": "MODEL_NAME", "value": "old"}, {"name": "X", "value": "1"}],
        "agenticLoop": {"maxSteps": 7, "enableTools": false, "enableDelegation": true},
    }, "container": {"env": [{"name": "X", "value": "2"}]}});
    let plan = plan(&older);
    assert_eq!(env(&plan, "MODEL_NAME"), Some("old"));
    assert_eq!(env(&plan, "X"), Some("2"), "the newer field wins");
    assert_eq!(env(&plan, "AGENTIC_LOOP_MAX_STEPS"), Some("7"));
    assert_eq!(env(&plan, "AGENTIC_LOOP_ENABLE_TOOLS"), Some("false"));
    assert_eq!(env(&plan, "AGENTIC_LOOP_ENABLE_DELEGATION"), Some("true"));
    let pod = testing::manifest(&plan, "Deployment");
    assert_eq!(pod.at(&["spec", "template", "spec", "containers"]).unwrap()[0]["resources"]["limits"]["cpu"], "1");
    let told: Vec<_> =
        plan.notes.iter().filter(|it| it.reason == "Deprecated").filter_map(|it| it.path.as_deref()).collect();
    assert_eq!(
        told,
        [
            "spec.resources",
            "spec.config.env",
            "spec.config.env[MODEL_NAME]",
            "spec.config.agenticLoop.maxSteps",
            "spec.config.agenticLoop.enableTools",
            "spec.config.agenticLoop.enableDelegation",
        ]
    );
}

#[test]
fn user_variables_win_and_occur_once() {
    let plan = plan(
        &json!({"container": {"env": [{"name": "MODEL_API_URL", "value": "http://mine"}, {"name": "AGENT_NAME", "value": "me"}]}}),
    );
    assert_eq!((env(&plan, "MODEL_API_URL"), env(&plan, "AGENT_NAME")), (Some("http://mine"), Some("me")));
    assert_eq!(plan.env.iter().filter(|var| var.name == "MODEL_API_URL").count(), 1);
    let origin = &plan.env.iter().find(|var| var.name == "MODEL_API_URL").unwrap().origin;
    assert_eq!(origin, "spec.container.env[0]");
}

#[test]
fn replicas_are_set_only_if_the_spec_sets_them() {
    let replicas = |plan: &Plan| testing::manifest(plan, "Deployment").at(&["spec", "replicas"]).cloned();
    assert_eq!(replicas(&plan(&json!({}))), None);
    assert_eq!(replicas(&plan(&json!({"replicas": 3}))), Some(json!(3)));
}

#[test]
fn an_unexposed_agent_gets_a_deployment_and_no_endpoint() {
    let object = agent(&json!({"agentNetwork": {"expose": false}}));
    let subject = subject(&object, &[up()]);
    let plan = testing::plan::<Agent>(&subject).unwrap();
    assert_eq!(plan.manifests.len(), 1);
    let report = Agent::assess(&subject, &testing::observation(Outcome::Applied).plan(&plan).build());
    assert!(!report.fields.contains("endpoint"));
}

#[test]
fn an_unexposed_agent_skips_the_checks_for_services_and_routes() {
    let judge = |expose: bool| {
        let mut object = agent(&json!({"agentNetwork": {"expose": expose}, "gatewayRoute": {"timeout": "100000h"}}));
        object["metadata"]["name"] = json!("my.agent");
        let routed = json!({"gateway": {"enabled": true, "name": "edge", "namespace": "edge", "timeout": "120s"}});
        let subject = testing::subject(&object).settings(&routed).serves("gateway.networking.k8s.io/v1", "HTTPRoute");
        testing::plan::<Agent>(&subject.beside::<Agent>(&[up()]).build())
    };
    let Err(Refusal::Invalid(wrong)) = judge(true) else { panic!("must be refused") };
    assert_eq!(wrong[0].path, "metadata.name");
    let plan = judge(false).unwrap();
    assert_eq!((plan.manifests.len(), plan.notes.len()), (1, 0), "{:?}", plan.notes);
}

#[test]
fn the_older_model_variable_may_use_value_from() {
    let from = json!({"configMapKeyRef": {"name": "models", "key": "mine"}});
    let plan = plan(&json!({"model": null, "config": {"env": [{"name": "MODEL_NAME", "valueFrom": from}]}}));
    let models: Vec<_> = plan.env.iter().filter(|var| var.name == "MODEL_NAME").collect();
    assert!(matches!(models[..], [EnvVar { source: EnvSource::ConfigMapKey(_), .. }]), "{models:?}");
}

#[test]
fn an_empty_model_counts_as_absent() {
    let older = json!({"model": "", "config": {"env": [{"name": "MODEL_NAME", "value": "old"}]}});
    assert_eq!(env(&plan(&older), "MODEL_NAME"), Some("old"));
    assert_eq!(refused(&json!({"model": ""})), "spec.model");
}

#[test]
fn a_duplicate_container_name_is_refused_at_the_second_container() {
    let container = |name: &str| json!({"name": name, "image": "i", "env": [{"name": "A", "value": "1"}]});
    let beside = |all: Value| refused(&json!({"podSpec": {"initContainers": all}}));
    assert_eq!(beside(json!([container("x"), container("x")])), "spec.podSpec.initContainers[1].name");
    assert_eq!(beside(json!([container("agent")])), "spec.podSpec.initContainers[0].name");
    assert_eq!(beside(json!([{"name": "x"}])), "spec.podSpec.initContainers[0].image");
}

#[test]
fn an_unready_dependency_does_not_stop_a_running_agent() {
    let beside = [api(&json!({"ready": false, "endpoint": "http://llm"}))];
    let subject = subject(&agent(&json!({})), &beside);
    let plan = testing::plan::<Agent>(&subject).unwrap();
    assert_eq!(plan.gates[0].message, "ModelAPI is not ready");
    let first = Agent::assess(&subject, &testing::observation(Outcome::Gated).plan(&plan).build());
    assert_eq!((first.phase.as_str(), first.message.as_str()), ("Waiting", "ModelAPI is not ready"));
    let running = testing::observation(Outcome::Applied).plan(&plan).child(&deployment(&plan, 1)).build();
    let report = Agent::assess(&subject, &running);
    assert!(report.ready);
    let dependencies = report.conditions.iter().find(|it| it.type_ == "DependenciesReady").unwrap();
    assert_eq!((dependencies.status, dependencies.message.as_str()), (Truth::No, "ModelAPI is not ready"));
}

#[test]
fn the_status_lists_the_linked_objects() {
    let server = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "MCPServer", "metadata": {"name": "t", "namespace": "ns"},
                        "status": {"ready": true, "endpoint": "http://t"}});
    let peer = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "metadata": {"name": "p", "namespace": "ns"},
                      "status": {"endpoint": "http://p"}});
    let object = agent(&json!({"mcpServers": ["t"], "agentNetwork": {"access": ["p", "gone", "a"]}}));
    let subject = subject(&object, &[up(), server, peer]);
    let report = Agent::assess(&subject, &testing::observation(Outcome::Applied).build());
    let fields = Object::parse(&report.fields);
    assert_eq!(
        fields.at(&["linkedResources"]).unwrap(),
        &json!({"modelapi": "llm", "mcpserver/t": "t", "agent/p": "p"})
    );
    let peers = report.conditions.iter().find(|it| it.type_ == "PeersResolved").unwrap();
    assert_eq!((peers.status, peers.reason.as_str()), (Truth::No, "PeerNotFound"));
}

#[test]
fn routes_without_the_gateway_api_give_a_note() {
    let schema: Value = serde_json::from_str(&Settings::schema_text()).unwrap();
    let mut settings = json!({});
    for (path, leaf) in leaves(&schema) {
        settings = with(&settings, &path, leaf["default"].clone());
    }
    settings = with(&with(&settings, "gateway.enabled", json!(true)), "gateway.name", json!("g"));
    let object = agent(&json!({"gatewayRoute": {"timeout": "100000s"}}));
    let asked = |served: bool| {
        let subject = testing::subject(&object).settings(&settings).beside::<Agent>(&[up()]);
        let subject = if served { subject.serves("gateway.networking.k8s.io/v1", "HTTPRoute") } else { subject };
        testing::plan::<Agent>(&subject.build()).unwrap()
    };
    let unserved = asked(false);
    assert_eq!(unserved.manifests.len(), 2);
    assert!(unserved.notes.iter().any(|note| note.reason == "GatewayUnserved"));
    let served = asked(true);
    let route = testing::manifest(&served, "HTTPRoute");
    assert_eq!(route.at(&["spec", "rules"]).unwrap()[0]["timeouts"]["request"], "27h46m40s");
    assert_eq!(served.notes[0].path.as_deref(), Some("spec.gatewayRoute.timeout"));
}

#[test]
fn every_refusal_names_its_field() {
    for (spec, path) in [
        (json!({"modelAPI": ""}), "spec.modelAPI"),
        (json!({"model": ""}), "spec.model"),
        (json!({"mcpServers": ["ok", "No"]}), "spec.mcpServers[1]"),
        (json!({"replicas": -1}), "spec.replicas"),
        (json!({"config": {"reasoningLoopMaxSteps": 0}}), "spec.config.reasoningLoopMaxSteps"),
        (json!({"config": {"memory": {"contextLimit": 101}}}), "spec.config.memory.contextLimit"),
        (json!({"config": {"memory": {"memoryStore": "No"}}}), "spec.config.memory.memoryStore"),
        (json!({"config": {"memory": {"type": "remote"}}}), "spec.config.memory.type"),
        (json!({"config": {"memory": {"type": "local", "memoryStore": "s"}}}), "spec.config.memory.memoryStore"),
        (json!({"config": {"memory": {"tools": "read"}}}), "spec.config.memory.tools"),
        (json!({"config": {"memory": {"maxReadScope": "user"}}}), "spec.config.memory.maxReadScope"),
        (json!({"config": {"autonomous": {"intervalSeconds": 3601}}}), "spec.config.autonomous.intervalSeconds"),
        (json!({"config": {"taskConfig": {"maxToolCalls": -1}}}), "spec.config.taskConfig.maxToolCalls"),
        (json!({"config": {"toolCallMode": "x"}}), "spec.config.toolCallMode"),
        (json!({"gatewayRoute": {"timeout": "soon"}}), "spec.gatewayRoute.timeout"),
        (
            json!({"container": {"env": [{"name": "A", "value": "1", "valueFrom": {}}]}}),
            "spec.container.env[0].valueFrom",
        ),
        (json!({"podSpec": 3}), "spec.podSpec"),
        (json!({"podSpec": {"containers": [{"name": "agent", "$patch": "delete"}]}}), "spec.podSpec.containers"),
        (json!({"podSpec": {"containers": [{"name": "side"}]}}), "spec.podSpec.containers[0].image"),
        (json!({"podSpec": {"containers": [{"name": "agent", "image": null}]}}), "spec.podSpec.containers[0].image"),
        (
            json!({"podSpec": {"containers": [{"name": "side", "image": "s", "env": [{"name": "A", "value": 1}]}]}}),
            "spec.podSpec.containers[0].env[0].value",
        ),
        (json!({"harness": {"runtime": "x", "workspace": {"repoURL": "git@h:r"}}}), "spec.harness.workspace.repoURL"),
    ] {
        assert_eq!(refused(&spec), path, "{spec}");
    }
}

#[test]
fn an_unknown_harness_is_refused_and_a_missing_registry_is_waited_for() {
    let object = agent(&json!({"harness": {"runtime": "x"}}));
    let Err(Refusal::Waiting(blockers)) = testing::plan::<Agent>(&subject(&object, &[up()])) else {
        panic!("must wait")
    };
    assert_eq!(blockers[0].on.name, "kaos-harness-runtimes");
    let registry = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"runtimes.yaml": "runtimes:\n  pi:\n    driver: pi\n"},
                          "metadata": {"name": "kaos-harness-runtimes", "namespace": "kaos-system"}});
    let asked = |runtime: &str| {
        let object = agent(&json!({"harness": {"runtime": runtime}}));
        match testing::plan::<Agent>(&subject(&object, &[up(), registry.clone()])) {
            Err(Refusal::Invalid(violations)) => (violations[0].path.clone(), violations[0].message.clone()),
            other => panic!("must be refused, not {other:?}"),
        }
    };
    assert_eq!(asked("x").1, "unknown harness runtime: x (not found in registry)");
    assert_eq!(
        asked("pi"),
        ("spec.container.image".into(), "harness runtime pi requires a user-supplied spec.container.image".into())
    );
}

#[test]
fn a_registry_is_read_in_every_style_of_yaml() {
    for text in [
        "runtimes:\n  pi:   # the one\n    image: \"pi:2\"\n    driver: 'd'\n",
        "runtimes: {pi: {image: pi:2, driver: d}, other: {image: [1]}}",
        "pi:\n  image: >-\n    pi:2\n  driver: \"\\x64\"\n",
        "base: &base {image: 'pi:2'}\nruntimes:\n  pi: {<<: *base, driver: d}\n",
    ] {
        let registry = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"runtimes.yaml": text},
                              "metadata": {"name": "kaos-harness-runtimes", "namespace": "kaos-system"}});
        let object = agent(&json!({"harness": {"runtime": "pi"}}));
        let plan = testing::plan::<Agent>(&subject(&object, &[up(), registry.clone()])).unwrap();
        assert_eq!(container(&plan)["image"], "pi:2", "{text}");
        assert_eq!(env(&plan, "HARNESS_DRIVER"), Some("d"), "{text}");
        let mut broken = registry;
        broken["data"]["runtimes.yaml"] = json!(format!("{text}\n]"));
        let waits = testing::plan::<Agent>(&subject(&object, &[up(), broken]));
        assert!(matches!(waits, Err(Refusal::Waiting(on)) if on[0].reason == "Unusable"), "{text}");
    }
}

#[test]
fn a_second_port_with_the_same_name_is_refused() {
    let ports = |name: &str| json!({"podSpec": {"containers": [{"name": "agent", "ports": [{"containerPort": 9000, "name": name}]}]}});
    assert_eq!(refused(&ports("http")), "spec.podSpec.containers[0].ports");
    let plan = plan(&ports("other"));
    let ports = container(&plan)["ports"].as_array().unwrap().len();
    assert_eq!(ports, 2);
}

#[test]
fn ports_with_one_number_and_two_protocols_both_stay() {
    let ports = json!([{"containerPort": 9000, "protocol": "UDP"}, {"containerPort": 9000}]);
    let plan = plan(&json!({"podSpec": {"containers": [{"name": "agent", "ports": ports}]}}));
    let ports = container(&plan)["ports"].clone();
    let said: Vec<_> =
        ports.as_array().unwrap().iter().map(|it| (it["containerPort"].as_u64(), it["protocol"].as_str())).collect();
    assert_eq!(said, [(Some(9000), Some("UDP")), (Some(9000), None), (Some(8000), Some("TCP"))]);
}

#[test]
fn a_probe_that_the_patch_deletes_is_absent() {
    let container = |patch: &Value| {
        let plan = plan(&json!({"podSpec": {"containers": [patch]}}));
        container(&plan)
    };
    for gone in [json!({"$patch": "delete"}), json!(null)] {
        let patched = container(&json!({"name": "agent", "readinessProbe": gone}));
        assert!(patched.get("readinessProbe").is_none() && patched.get("livenessProbe").is_some(), "{patched}");
    }
    let hooks =
        container(&json!({"name": "agent", "lifecycle": {"preStop": {}, "postStart": {"sleep": {"seconds": 1}}}}));
    assert_eq!(hooks["lifecycle"], json!({"postStart": {"sleep": {"seconds": 1}}}));
}

#[test]
fn a_duplicate_variable_gives_a_note() {
    let plan = plan(&json!({"container": {"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}}));
    let note = plan.notes.iter().find(|note| note.reason == "DuplicateEnv").unwrap();
    assert_eq!(note.path.as_deref(), Some("spec.container.env"));
    assert_eq!(env(&plan, "A"), Some("2"));
}

#[test]
fn a_too_deeply_nested_spec_is_refused_and_not_read_as_empty() {
    let deep = (0..130).fold(json!(1), |inner, _| json!([inner]));
    let Err(Refusal::Invalid(violations)) =
        testing::plan::<Agent>(&subject(&agent(&json!({"podSpec": {"x": deep}})), &[up()]))
    else {
        panic!("must be refused")
    };
    let told = violations.iter().find(|violation| violation.path == "spec").unwrap();
    assert!(told.message.contains("128 levels"), "{told:?}");
    assert!(violations.iter().all(|violation| violation.path != "spec.modelAPI"), "{violations:?}");
}

#[test]
fn all_samples_but_the_waiting_one_get_a_plan() {
    let mut plans = 0;
    for sample in &Agent::describe().claims[0].samples {
        let parse = |text: &String| serde_json::from_str::<Value>(text).unwrap();
        let beside: Vec<Value> = sample.beside.iter().map(parse).collect();
        plans += usize::from(testing::plan::<Agent>(&subject(&parse(&sample.object), &beside)).is_ok());
    }
    assert_eq!(plans, 5, "each sample except the waiting one gets a plan");
}

#[test]
fn a_too_deeply_nested_object_is_refused_and_keeps_its_endpoint() {
    let mut object = agent(&json!({"podSpec": {}}));
    object["spec"]["podSpec"]["x"] = (0..200).fold(json!(1), |inner, _| json!([inner]));
    let subject = testing::subject(&object).build();
    let Err(refusal) = testing::plan::<Agent>(&subject) else { panic!("must be refused") };
    let Refusal::Invalid(wrong) = &refusal else { panic!("must be invalid, not {refusal:?}") };
    assert_eq!(wrong[0].path, "spec");
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "agent-a", "namespace": "ns"},
        "spec": {"ports": [{"name": "http", "port": 8000}]},
    });
    let seen = testing::observation(Outcome::Refused(refusal)).child(&service).build();
    let report = Agent::assess(&subject, &seen);
    let fields: Value = serde_json::from_str(&report.fields).unwrap();
    assert_eq!(fields["endpoint"], "http://agent-a.ns.svc.cluster.local:8000");
}
