//! The committed schema matches the code. Each row lists a setting and all paths in the plan that the setting changes.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../../mcpserver/tests/support/settings.rs"]
mod changes;
#[path = "../../mcpserver/tests/support/committed.rs"]
mod committed;
#[path = "../../mcpserver/tests/support/mod.rs"]
mod support;

use changes::{probe, row};
use kaos_memorystore::{MemoryStore, Settings};
use kaos_policy_sdk::testing;
use kaos_policy_sdk::types::Plan;
use serde_json::{Value, json};

#[test]
fn the_committed_schema_equals_that_of_the_code() {
    committed::assert_schema(&Settings::schema_text());
}

/// Returns the plan with `settings` for an object that `setting` affects. Telemetry and routes are enabled.
fn plan(setting: &str, settings: &Value) -> Plan {
    let storage = if setting == "minAvailable" {
        json!({"type": "external", "external": {"connectionSecretRef": {"name": "pg", "key": "dsn"}}})
    } else {
        json!({"type": "local"})
    };
    let model = json!({"modelAPI": "llm", "model": "m"});
    let models = json!({"summarization": model, "embedding": model});
    let object = json!({"metadata": {"name": "t", "namespace": "n"}, "spec": {"storage": storage, "models": models}});
    let api = json!({
        "apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "metadata": {"name": "llm", "namespace": "n"},
        "spec": {"mode": "Proxy", "proxyConfig": {"models": ["*"]}}, "status": {"ready": true, "endpoint": "http://llm"},
    });
    let subject = testing::subject(&object)
        .settings(settings)
        .serves("gateway.networking.k8s.io/v1", "HTTPRoute")
        .serves("gateway.envoyproxy.io/v1alpha1", "SecurityPolicy")
        .serves("networking.k8s.io/v1", "NetworkPolicy");
    let subject = subject.beside::<MemoryStore>(&[api]).build();
    testing::plan::<MemoryStore>(&subject).unwrap_or_else(|refused| panic!("{setting}: {refused:?}"))
}

#[test]
fn every_setting_changes_exactly_its_own_fields() {
    let mut settings = support::default_settings::<MemoryStore>();
    settings["gateway"] = json!({"enabled": true, "name": "g", "namespace": "gn", "timeout": "30s"});
    settings["telemetry"]["enabled"] = json!(true);
    settings["telemetry"]["endpoint"] = json!("http://o");
    let pod = "Deployment:/spec/template/spec";
    let claim = "PersistentVolumeClaim:";
    let everywhere = "Deployment:/metadata/KEY Deployment:/spec/template/metadata/KEY Service:/metadata/KEY \
                      HTTPRoute:/metadata/KEY PersistentVolumeClaim:/metadata/KEY";
    let ports = "@/ports/0/containerPort @/livenessProbe/httpGet/port @/readinessProbe/httpGet/port \
                 Service:/spec/ports/0/targetPort";
    let mut rows = vec![
        row("image", json!("i:1"), "@/image"),
        row("imagePullPolicy", json!("Always"), "@/imagePullPolicy"),
        row("containerPort", json!(9), ports),
        row("servicePort", json!(9), "Service:/spec/ports/0/port HTTPRoute:/spec/rules/0/backendRefs/0/port"),
        row("portName", json!("web"), "@/ports/0/name Service:/spec/ports/0/name"),
        row("serviceType", json!("LoadBalancer"), "Service:/spec/type"),
        row("resources", json!({"limits": {"cpu": "1"}}), "@/resources"),
        row("securityContext", json!({"runAsNonRoot": true}), "@/securityContext"),
        row("podSecurityContext", json!({"runAsNonRoot": true}), &format!("{pod}/securityContext")),
        row("automountServiceAccountToken", json!(false), &format!("{pod}/automountServiceAccountToken")),
        row("volume.name", json!("x"), &format!("@/volumeMounts/0/name {pod}/volumes/0/name")),
        row("volume.mountPath", json!("/x"), "@/volumeMounts/0/mountPath @/env/1/value"),
        row("volume.accessMode", json!("ReadWriteOncePod"), &format!("{claim}/spec/accessModes/0")),
        row("volume.storageClass", json!("fast"), &format!("{claim}/spec/storageClassName")),
        // This setting changes no manifest. The setting changes only a list in the plan: the volume claims that the
        // host keeps.
        row("volume.keep", json!(true), ""),
        row("volume.claim", json!("mine"), &format!("{claim} {pod}/volumes/0/persistentVolumeClaim/claimName")),
        row("volume.strategy", json!("RollingUpdate"), "Deployment:/spec/strategy"),
        row("minAvailable", json!(0), "PodDisruptionBudget:"),
        row("requirePrincipal", json!(true), "@/env"),
        row("requireAgentIdentity", json!(true), "@/env"),
        row("extraLabels", json!({"team": "x"}), &everywhere.replace("KEY", "labels/team")),
        row("extraAnnotations", json!({"team": "x"}), &everywhere.replace("KEY", "annotations")),
        row("gateway.enabled", json!(false), "HTTPRoute:"),
        row("gateway.name", json!("other"), "HTTPRoute:/spec/parentRefs/0/name"),
        row("gateway.namespace", json!("other"), "HTTPRoute:/spec/parentRefs/0/namespace"),
        row("gateway.timeout", json!("1m"), "HTTPRoute:/spec/rules/0/timeouts/request"),
        row("telemetry.enabled", json!(false), "@/env"),
        row("telemetry.endpoint", json!("http://x"), "@/env/8/value"),
        row("telemetry.excludedUrls", json!("/x"), "@/env/10/value"),
        row("finalizer", json!("kaos.tools/memorystore-finalizer"), ""),
    ];
    for field in ["livenessProbe", "readinessProbe"] {
        rows.extend(probe(field, field, "httpGet"));
    }
    rows.extend(changes::security());
    changes::assert_each_changes_its_places::<MemoryStore>(&settings, &rows, plan);
}

#[test]
fn the_plan_passes_finalizer_and_retention_to_the_host() {
    let mut settings = support::default_settings::<MemoryStore>();
    let asked = |settings: &Value| {
        let plan = plan("finalizer", settings);
        (plan.finalizer, plan.kept)
    };
    assert_eq!(asked(&settings), (None, vec![]));
    settings["finalizer"] = json!("example.com/x");
    settings["volume"]["keep"] = json!(true);
    assert_eq!(asked(&settings), (Some("example.com/x".to_owned()), vec!["memorystore-t-data".to_owned()]));
}
