//! What the settings of the default policies may be: a value that no API server and no guard takes is told by the
//! name of the setting, and none that gives a pod more power is an object's to set.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use kaos_policy::settings::{Content, Layer, Origin, Path};
use kaos_tests::policies;
use serde_json::{Value, json};

/// What is wrong with `value` at `path` of the settings of `policy`: the paths.
fn refused(policy: &str, path: &str, value: &Value) -> Vec<String> {
    let policies = policies::native().expect("the policies describe themselves");
    let policy = policies.iter().find(|it| it.id().name == policy).expect("there is such a policy");
    assert!(policy.schema().has(&Path::parse(path)), "{path}");
    let tree = path.rsplit('.').fold(value.clone(), |inner, name| json!({ name: inner }));
    let layer = Layer { origin: Origin::CommandLine, policy: None, content: Content::Tree(tree) };
    match policy.schema().resolve(&policy.id().name, &[layer]) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.0.iter().map(|error| error.path.to_string()).collect(),
    }
}

/// The policies, and what the settings of a server are called there.
const SERVERS: [(&str, &str); 5] =
    [("agent", ""), ("mcpserver", ""), ("memorystore", ""), ("modelapi", "proxy."), ("modelapi", "hosted.")];

#[test]
fn a_setting_that_no_manifest_can_hold_is_refused_by_its_name() {
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
fn what_an_api_server_takes_is_taken() {
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
fn no_annotation_gives_a_pod_more_power() {
    let policies = policies::native().expect("the policies describe themselves");
    let annotatable = |policy: &str, path: &str| {
        let policy = policies.iter().find(|it| it.id().name == policy).expect("there is such a policy");
        assert!(policy.schema().has(&Path::parse(path)), "{path}");
        policy.schema().annotatable(&Path::parse(path))
    };
    for (policy, server) in SERVERS {
        for name in ["securityContext", "podSecurityContext", "automountServiceAccountToken", "serviceType"] {
            assert!(!annotatable(policy, &format!("{server}{name}")), "{policy} {server}{name}");
        }
        assert!(annotatable(policy, &format!("{server}resources")), "{policy} {server}");
        for name in ["extraLabels", "extraAnnotations", "finalizer", "gateway.name"] {
            assert!(!annotatable(policy, name), "{policy} {name}");
        }
    }
    for path in ["modelStore.source", "modelPull.script", "proxyConfig.extraArgs"] {
        assert!(!annotatable("modelapi", path), "{path}");
    }
}
