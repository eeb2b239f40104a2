//! Tests which values the operator accepts for the settings of the default policies. The operator refuses a value that
//! an API server or the guard would reject, and names the setting. An annotation of an object cannot change a setting
//! that would give a pod more privileges.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use kaos_operator::presets::Preset;
use kaos_policy::contract::{Cluster, Refusal};
use kaos_policy::guard::UserPrivileges;
use kaos_policy::lookup::Fixed;
use kaos_policy::policy::Stack;
use kaos_policy::render::{Renderer, Verdict};
use kaos_policy::settings::{Content, Layer, Origin, Path};
use kaos_tests::policies;
use serde_json::{Value, json};

/// Sets `path` in the settings of `policy` to `value`, and returns the paths of all resulting errors.
fn refused(policy: &str, path: &str, value: &Value) -> Vec<String> {
    let policies = policies::native().expect("the policies describe themselves");
    let policy = policies.iter().find(|it| it.id().name == policy).expect("a default policy has this name");
    assert!(policy.schema().has(&Path::parse(path)), "{path}");
    let tree = path.rsplit('.').fold(value.clone(), |inner, name| json!({ name: inner }));
    let layer = Layer { origin: Origin::CommandLine, policy: None, content: Content::Tree(tree) };
    match policy.schema().resolve(&policy.id().name, &[layer]) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.0.iter().map(|error| error.path.to_string()).collect(),
    }
}

/// The policies that plan pods. Each entry has the name of a policy, and the prefix of those settings that concern a
/// pod.
const SERVERS: [(&str, &str); 5] =
    [("agent", ""), ("mcpserver", ""), ("memorystore", ""), ("modelapi", "proxy."), ("modelapi", "hosted.")];

#[test]
fn a_setting_that_fits_no_manifest_is_refused_by_name() {
    let bad = [
        ("portName", json!("THIS IS BAD")),
        ("portName", json!("a--b")),
        ("portName", json!("80")),
        ("containerPort", json!(0)),
        ("readinessProbe.port", json!(0)),
        ("readinessProbe.path", json!("no-slash")),
        ("readinessProbe.periodSeconds", json!(0)),
        ("readinessProbe.timeoutSeconds", json!(0)),
        ("readinessProbe.successThreshold", json!(0)),
        ("readinessProbe.initialDelaySeconds", json!(3_000_000_000_u32)),
        ("livenessProbe.successThreshold", json!(2)),
        ("resources", json!({"limits": {"cpu": "abc"}})),
    ];
    for (policy, server) in SERVERS {
        for (name, value) in &bad {
            let path = format!("{server}{name}");
            let told = refused(policy, &path, value);
            assert!(told.first().is_some_and(|told| told.starts_with(&path)), "{policy} {path} {value}: {told:?}");
        }
    }
    let shared = [
        ("extraLabels", json!({"a b": "x"})),
        ("extraLabels", json!({"a": "x y"})),
        ("extraLabels", json!({"kaos.tools/policy": "x"})),
        ("extraAnnotations", json!({"kaos.tools/applied-digest": "x"})),
        ("gateway.name", json!("Bad Name")),
        ("gateway.namespace", json!("a.b")),
        ("finalizer", json!("no-domain")),
    ];
    for policy in ["agent", "mcpserver", "memorystore", "modelapi"] {
        for (path, value) in &shared {
            let told = refused(policy, path, value);
            assert!(told.first().is_some_and(|told| told.starts_with(path)), "{policy} {path} {value}: {told:?}");
        }
    }
    for (policy, path, value) in [
        ("agent", "harness.registry", "a b"),
        ("agent", "harness.workspace", "rel"),
        ("mcpserver", "registry.configMap", "A"),
        ("mcpserver", "registry.key", "../x"),
        ("memorystore", "volume.name", "Bad_Name"),
        ("memorystore", "volume.mountPath", "rel"),
        ("memorystore", "volume.accessMode", "ReadOnlyMany"),
        ("memorystore", "volume.storageClass", "A"),
        ("memorystore", "volume.claim", "a b"),
        ("modelapi", "proxyConfig.fileName", "../../x"),
        ("modelapi", "proxyConfig.fileName", ".."),
        ("modelapi", "proxyConfig.mountPath", "rel:ative"),
        ("modelapi", "proxyConfig.volumeName", "Bad_Name"),
        ("modelapi", "modelStore.mountPath", "rel"),
        ("modelapi", "modelPull.name", "Bad_Name"),
    ] {
        assert_eq!(refused(policy, path, &json!(value)), [path], "{policy} {path}");
    }
}

#[test]
fn settings_that_an_api_server_accepts_are_accepted() {
    let good = [
        ("portName", json!("a-1")),
        ("portName", json!("8-b")),
        ("readinessProbe.port", json!(null)),
        ("livenessProbe.handler", json!("none")),
        (
            "resources",
            json!({"limits": {"cpu": "1.5", "memory": "1Gi", "x/y": 2}, "requests": {"cpu": "100m"}, "claims": []}),
        ),
    ];
    for (policy, server) in SERVERS {
        for (name, value) in &good {
            assert_eq!(refused(policy, &format!("{server}{name}"), value), [""; 0], "{policy} {server}{name}");
        }
    }
    for policy in ["agent", "mcpserver", "memorystore", "modelapi"] {
        for (path, value) in [
            ("extraLabels", json!({"a.b/C_d": "", "team": "X.y-1"})),
            ("extraAnnotations", json!({"a.b/c": "any text\n", "not-kaos.tools/x": ""})),
            ("gateway.name", json!("a.b-c")),
            ("gateway.namespace", json!("")),
            ("finalizer", json!("kaos.tools/x-finalizer")),
        ] {
            assert_eq!(refused(policy, path, &value), [""; 0], "{policy} {path}");
        }
    }
    assert_eq!(refused("modelapi", "proxyConfig.fileName", &json!(".hidden.yaml")), [""; 0]);
}

#[test]
fn no_annotation_raises_a_pods_privileges() {
    let policies = policies::native().expect("the policies describe themselves");
    let annotatable = |policy: &str, path: &str| {
        let policy = policies.iter().find(|it| it.id().name == policy).expect("a default policy has this name");
        assert!(policy.schema().has(&Path::parse(path)), "{path}");
        policy.schema().annotatable(&Path::parse(path))
    };
    for (policy, server) in SERVERS {
        for name in ["securityContext", "podSecurityContext", "automountServiceAccountToken", "serviceType"] {
            assert!(!annotatable(policy, &format!("{server}{name}")), "{policy} {server}{name}");
        }
        assert!(annotatable(policy, &format!("{server}resources")), "{policy} {server}");
        for name in ["extraLabels", "extraAnnotations", "finalizer", "gateway.name", "security.pdp"] {
            assert!(!annotatable(policy, name), "{policy} {name}");
        }
    }
    assert!(!annotatable("agent", "serviceAccount.audience"));
    for path in ["modelStore.source", "modelPull.script", "proxyConfig.extraArgs"] {
        assert!(!annotatable("modelapi", path), "{path}");
    }
}

/// Renders an Agent with a ServiceAccount and these settings, under the flag that forbids privileges to users.
fn with_account(layers: &[Layer]) -> Verdict {
    let policies = policies::native().expect("the policies describe themselves");
    let policy = policies.iter().find(|it| it.id().name == "agent").expect("a default policy has this name");
    let stack = Stack::single(Arc::clone(policy)).unwrap();
    let renderer = Renderer::new(&stack, layers, Cluster::default()).unwrap();
    let renderer = renderer.with_user_privileges(UserPrivileges::Forbidden);
    let of = |kind: &str, name: &str| json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": name, "namespace": "t"}});
    let (mut agent, mut model) = (of("Agent", "a"), of("ModelAPI", "llm"));
    agent["metadata"]["annotations"] = json!({"settings.kaos.tools/serviceAccount.enabled": "true"});
    agent["spec"] = json!({"modelAPI": "llm", "model": "m"});
    model["spec"] = json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}});
    model["status"] = json!({"ready": true, "endpoint": "http://llm"});
    renderer.render(&agent, &Fixed::new([model])).unwrap().verdict
}

#[test]
fn only_the_owner_sets_the_audience_of_an_agents_token() {
    let set = |origin: Origin, audience: &str| {
        Layer::tree(origin, "agent", json!({"serviceAccount": {"audience": audience}}))
    };
    let environment = [("SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_AUDIENCE".to_owned(), "kaos-gateway".to_owned())];
    for layer in [
        Layer::env(Origin::Environment, environment),
        set(Origin::OperatorConfig, "kaos-gateway"),
        set(Origin::ClusterPolicy("p".to_owned()), "kaos-gateway"),
        set(Origin::CommandLine, "kaos-gateway"),
    ] {
        let verdict = with_account(&[layer]);
        assert!(matches!(verdict, Verdict::Planned(_)), "{verdict:?}");
    }
    let of_a_namespace = || set(Origin::NamespacePolicy("t/p".to_owned()), "sts.amazonaws.com");
    for layers in [vec![of_a_namespace()], vec![set(Origin::OperatorConfig, "kaos-gateway"), of_a_namespace()]] {
        let Verdict::Refused(Refusal::Invalid(told)) = with_account(&layers) else { panic!("the Agent has a token") };
        assert_eq!(told[0].path, "settings.agent.serviceAccount.audience");
        assert!(told[0].message.contains("settings of a namespace must not raise a privilege"), "{}", told[0].message);
    }
}

#[test]
fn no_settings_of_a_namespace_open_its_objects() {
    let policies = policies::native().expect("the policies describe themselves");
    let resolved = |policy: &str, origin: Origin, tree: Value| {
        let policy = policies.iter().find(|it| it.id().name == policy).expect("a default policy has this name");
        policy.schema().resolve(&policy.id().name, &[Layer::tree(origin, policy.id().name.as_str(), tree)])
    };
    let of_a_namespace = || Origin::NamespacePolicy("t/p".to_owned());
    let off = || json!({"security": {"networkPolicy": {"disabled": true}}});
    for policy in ["agent", "mcpserver", "memorystore", "modelapi"] {
        let errors = resolved(policy, of_a_namespace(), off()).unwrap_err();
        assert_eq!(errors.0[0].path.to_string(), "security", "{policy}");
        assert!(errors.to_string().contains("must not be set for a namespace"), "{errors}");
        assert!(resolved(policy, Origin::ClusterPolicy("p".to_owned()), off()).is_ok(), "{policy}");
        assert!(
            resolved(policy, of_a_namespace(), json!({"serviceType": "ClusterIP"})).is_ok() || policy == "modelapi"
        );
    }
    let elsewhere = resolved("agent", of_a_namespace(), json!({"gatewayRouting": {"host": "mine"}}));
    assert_eq!(elsewhere.unwrap_err().0[0].path.to_string(), "gatewayRouting");
}

/// Returns the pod of an object, rendered with a preset.
fn pod(preset: &Preset, policy: &str, object: &Value) -> Value {
    let policies = policies::native().expect("the policies describe themselves");
    let policy = policies.iter().find(|it| it.id().name == policy).expect("a default policy has this name");
    let stack = Stack::single(Arc::clone(policy)).unwrap();
    let renderer = Renderer::new(&stack, &preset.layers(), Cluster::default()).unwrap();
    let model = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI",
        "metadata": {"name": "llm", "namespace": "t"}, "spec": {"mode": "Proxy", "proxyConfig": {"models": ["*"]}},
        "status": {"ready": true, "endpoint": "http://llm"}});
    let rendered = renderer.render(object, &Fixed::new([model])).unwrap();
    let deployment = rendered.manifests().iter().find(|it| it["kind"] == "Deployment");
    deployment.unwrap_or_else(|| panic!("{:?}", rendered.verdict))["spec"]["template"]["spec"].clone()
}

#[test]
fn with_the_preset_of_kaos_0_8_pods_equal_the_pods_of_kaos_0_8() {
    let preset = Preset::named("kaos-0.8").unwrap();
    let object = |kind: &str, spec: Value| json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": "a", "namespace": "t"}, "spec": spec});
    let numbers = |probe: &Value| {
        let fields = ["initialDelaySeconds", "periodSeconds", "timeoutSeconds", "failureThreshold"];
        fields.map(|field| probe[field].as_u64().unwrap())
    };
    let agent = object("Agent", json!({"modelAPI": "llm", "model": "m", "config": {"memory": {}}}));
    let server = object("MCPServer", json!({"runtime": "custom", "container": {"image": "i"}}));
    for (policy, object) in [("agent", &agent), ("mcpserver", &server)] {
        let main = &pod(&preset, policy, object)["containers"][0];
        assert_eq!(numbers(&main["livenessProbe"]), [5, 10, 3, 3], "{policy}");
        assert_eq!(numbers(&main["readinessProbe"]), [3, 5, 3, 2], "{policy}");
    }
    let agent = pod(&preset, "agent", &agent);
    let account = (&agent["serviceAccountName"], &agent["automountServiceAccountToken"]);
    assert_eq!(account, (&json!("kaos-agent-a"), &json!(false)));
    let env = agent["containers"][0]["env"].as_array().unwrap();
    let names: Vec<&str> = env.iter().map(|it| it["name"].as_str().unwrap()).collect();
    let wanted = [
        "AGENT_NAME",
        "MODEL_API_URL",
        "MODEL_NAME",
        "AGENTIC_LOOP_MAX_STEPS",
        "MEMORY_ENABLED",
        "MEMORY_TYPE",
        "MEMORY_MAX_READ_SCOPE",
        "AGENT_IDENTITY",
        "LOG_LEVEL",
        "AGENT_AUTH_IDENTITY",
        "AGENT_AUTH_TOKEN_FILE",
    ];
    assert_eq!(names, wanted);
    let hosted = object("ModelAPI", json!({"mode": "Hosted", "hostedConfig": {"model": "m"}}));
    let main = &pod(&preset, "modelapi", &hosted)["containers"][0];
    assert_eq!((&main["command"], &main["args"]), (&json!(["ollama"]), &json!(["serve"])));
}
