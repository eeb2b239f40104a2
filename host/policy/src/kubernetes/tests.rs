//! Checks manifests that an API server refuses, and compares the path in each finding with the expected path. The suite
//! `fields` sends the same manifests to a real API server.

use serde_json::{Value, json};

use super::{Checks, check};
use crate::origins::written;

fn told(manifest: &Value) -> Vec<String> {
    let line = |finding: super::Finding| format!("{}: {}", written(&finding.path), finding.message);
    check(manifest, Checks::Fields).into_iter().map(line).collect()
}

/// A Deployment with extra fields in its pod spec and in its container.
fn deployment(pod: &Value, container: &Value) -> Value {
    let merged = |one: Value, other: &Value| {
        let fields = |value: &Value| value.as_object().cloned().unwrap_or_default();
        Value::Object(fields(&one).into_iter().chain(fields(other)).collect())
    };
    let main = merged(json!({"name": "main", "image": "i"}), container);
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w"}, "spec": {
        "selector": {"matchLabels": {"app": "w"}},
        "template": {"metadata": {"labels": {"app": "w"}}, "spec": merged(json!({"containers": [main]}), pod)}}})
}

fn of_pod(pod: &Value) -> Vec<String> {
    told(&deployment(pod, &json!({}))).iter().map(|line| line.replace("spec.template.spec.", "")).collect()
}

fn of_container(container: &Value) -> Vec<String> {
    let told = told(&deployment(&json!({"volumes": [{"name": "v"}]}), container));
    told.iter().map(|line| line.replace("spec.template.spec.containers[0].", "")).collect()
}

/// Checks that each case has exactly one finding, and that the finding has the expected path.
fn each(of: impl Fn(&Value) -> Vec<String>, cases: &[(Value, &str)]) {
    for (fields, place) in cases {
        let told = of(fields);
        assert!(told.len() == 1 && told[0].starts_with(&format!("{place}: ")), "{fields}: {place}: {told:?}");
    }
}

#[test]
fn a_manifest_that_kubernetes_accepts_has_no_findings() {
    let pod = json!({
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "projected": {"sources": [{"secret": {"name": "s"}}]}}],
        "tolerations": [{"operator": "Exists"}], "nodeSelector": {"a.b/c": "D_1"}, "dnsPolicy": "",
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}}]}},
        "initContainers": [{"name": "a", "image": "b", "restartPolicy": "Always", "startupProbe": {"exec": {"command": ["x"]}}}],
    });
    let container = json!({
        "env": [{"name": "a b.c"}, {"name": "L", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a/b']"}}}],
        "ports": [{"containerPort": 1, "name": "a-1"}, {"containerPort": 1, "protocol": "UDP"}],
        "volumeMounts": [{"name": "v", "mountPath": "a"}, {"name": "v", "mountPath": "/b", "subPath": "c"}],
        "resources": {"limits": {"cpu": 1, "nvidia.com/gpu": "1", "memory": "1Gi"}, "requests": {"cpu": "999m"}},
        "readinessProbe": {"httpGet": {"port": "a-1"}, "successThreshold": 2}, "imagePullPolicy": "",
        "livenessProbe": {"tcpSocket": {"port": 1}, "successThreshold": 0},
    });
    assert_eq!(told(&deployment(&pod, &container)), [""; 0]);
}

#[test]
fn variables_that_kubernetes_refuses_are_found() {
    let secret = |key: &str| json!([{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": key}}}]);
    each(
        |env| of_container(&json!({"env": env})),
        &[
            (json!([{"name": "é"}]), "env[0].name"),
            (json!([{"name": "A"}, {"name": "a=b"}]), "env[1].name"),
            (json!([{"name": "a\u{7}"}]), "env[0].name"),
            (json!([{"value": "1"}]), "env[0].name"),
            (json!([{"name": "A", "valueFrom": {}}]), "env[0].valueFrom"),
            (
                json!([{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
                "env[0].valueFrom",
            ),
            (
                json!([{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.nam"}}}]),
                "env[0].valueFrom.fieldRef.fieldPath",
            ),
            (secret("a b"), "env[0].valueFrom.secretKeyRef.key"),
            (secret(""), "env[0].valueFrom.secretKeyRef.key"),
            (
                json!([{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "A B", "key": "k"}}}]),
                "env[0].valueFrom.configMapKeyRef.name",
            ),
            (json!([{"name": "A"}, {"name": "A"}]), "env[1].name"),
        ],
    );
    each(
        |from| of_container(&json!({"envFrom": [from]})),
        &[
            (json!({}), "envFrom[0]"),
            (json!({"secretRef": {"name": "A B"}}), "envFrom[0].secretRef.name"),
            (json!({"prefix": "a=", "secretRef": {"name": "a"}}), "envFrom[0].prefix"),
        ],
    );
}

#[test]
fn invalid_volumes_and_mounts_are_found() {
    let mount = |name: &str, path: &str| json!({"name": name, "mountPath": path});
    each(
        |volumes| of_pod(&json!({"volumes": volumes})),
        &[
            (json!([{"name": "a"}, {"name": "a"}]), "volumes[1].name"),
            (json!([{"name": "A B"}]), "volumes[0].name"),
            (json!([{"emptyDir": {}}]), "volumes[0].name"),
            (json!([{"name": "a", "emptyDir": {}, "secret": {"secretName": "s"}}]), "volumes[0]"),
            (json!([{"name": "a", "secret": {}}]), "volumes[0].secret.secretName"),
            (json!([{"name": "a", "configMap": {"name": ""}}]), "volumes[0].configMap.name"),
            (json!([{"name": "a", "emptyDir": {"sizeLimit": "-1"}}]), "volumes[0].emptyDir.sizeLimit"),
            (
                json!([{"name": "a", "secret": {"secretName": "s", "defaultMode": 777}}]),
                "volumes[0].secret.defaultMode",
            ),
        ],
    );
    each(
        |mounts| of_container(&json!({"volumeMounts": mounts})),
        &[
            (json!([mount("v", "/a"), mount("v", "/a")]), "volumeMounts[1].mountPath"),
            (json!([mount("w", "/a")]), "volumeMounts[0].name"),
            (json!([mount("v", "")]), "volumeMounts[0].mountPath"),
            (json!([{"name": "v", "mountPath": "/a", "subPath": "../b"}]), "volumeMounts[0].subPath"),
        ],
    );
}

#[test]
fn a_stateful_set_mounts_the_volumes_of_its_claim_templates() {
    let set = |mounted: &str, size: &str| {
        let container =
            json!({"name": "main", "image": "i", "volumeMounts": [{"name": mounted, "mountPath": "/data"}]});
        let claim = json!({"metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}});
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "w"}, "spec": {
            "selector": {"matchLabels": {"app": "w"}}, "serviceName": "w", "volumeClaimTemplates": [claim],
            "template": {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [container]}}}})
    };
    assert_eq!(told(&set("data", "1Gi")), [""; 0]);
    let missing = told(&set("other", "1Gi"));
    assert!(missing.len() == 1 && missing[0].contains("the pod has no volume"), "{missing:?}");
    let wrong = told(&set("data", "much"));
    let path = "spec.volumeClaimTemplates[0].spec.resources.requests.storage: ";
    assert!(wrong.len() == 1 && wrong[0].starts_with(path), "{wrong:?}");
}

#[test]
fn invalid_names_ports_and_probes_of_containers_are_found() {
    let port = |number: i64| json!({"ports": [{"containerPort": number}]});
    each(
        of_container,
        &[
            (json!({"name": "A B"}), "name"),
            (json!({"name": "a".repeat(64)}), "name"),
            (json!({"image": ""}), "image"),
            (port(0), "ports[0].containerPort"),
            (port(-1), "ports[0].containerPort"),
            (port(65536), "ports[0].containerPort"),
            (json!({"ports": [{"containerPort": 1, "name": "A B"}]}), "ports[0].name"),
            (json!({"ports": [{"containerPort": 1, "protocol": "tcp"}]}), "ports[0].protocol"),
            (json!({"ports": [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]}), "ports[1].name"),
            (json!({"livenessProbe": {}}), "livenessProbe"),
            (json!({"livenessProbe": {"httpGet": {"port": 0}}}), "livenessProbe.httpGet.port"),
            (
                json!({"readinessProbe": {"tcpSocket": {"port": "A"}, "periodSeconds": 1}}),
                "readinessProbe.tcpSocket.port",
            ),
            (
                json!({"readinessProbe": {"tcpSocket": {"port": 1}, "periodSeconds": -1}}),
                "readinessProbe.periodSeconds",
            ),
            (json!({"lifecycle": {"preStop": {"sleep": {"seconds": 31}}}}), "lifecycle.preStop.sleep.seconds"),
            (json!({"imagePullPolicy": "Sometimes"}), "imagePullPolicy"),
        ],
    );
}

#[test]
fn invalid_amounts_are_found() {
    each(
        |resources| of_container(&json!({"resources": resources})),
        &[
            (json!({"limits": {"memory": "-1Gi"}}), "resources.limits.memory"),
            (json!({"limits": {"memory": "lots"}}), "resources.limits.memory"),
            (json!({"limits": {"memroy": "1Gi"}}), "resources.limits.memroy"),
            (json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1001m"}}), "resources.requests.cpu"),
            (json!({"requests": {"a.b/gpu": "1"}}), "resources.requests[\"a.b/gpu\"]"),
            (json!({"limits": {"a.b/gpu": "1500m"}}), "resources.limits[\"a.b/gpu\"]"),
            (json!({"limit": {"memory": "1Gi"}}), "resources.limit"),
        ],
    );
}

#[test]
fn devices_of_a_pod_as_a_whole_are_refused() {
    each(
        |resources| of_pod(&json!({"resources": resources})),
        &[(json!({"limits": {"a.b/gpu": "1"}}), "resources.limits[\"a.b/gpu\"]")],
    );
}

#[test]
fn invalid_node_selectors_names_and_users_of_pods_are_found() {
    let term = json!({"weight": 0, "podAffinityTerm": {"topologyKey": "a"}});
    each(
        of_pod,
        &[
            (json!({"nodeSelecter": {}}), "nodeSelecter"),
            (json!({"nodeSelector": {"a b": "c"}}), "nodeSelector[\"a b\"]"),
            (json!({"nodeSelector": {"a": "c d"}}), "nodeSelector.a"),
            (json!({"tolerations": [{"key": "a", "operator": "Is"}]}), "tolerations[0].operator"),
            (json!({"tolerations": [{}]}), "tolerations[0].operator"),
            (
                json!({"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}}),
                "affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight",
            ),
            (json!({"serviceAccountName": "A B"}), "serviceAccountName"),
            (json!({"serviceAccount": "A B"}), "serviceAccount"),
            (
                json!({"volumes": [{"name": "a", "cinder": {"volumeID": "b", "secretRef": {}}}]}),
                "volumes[0].cinder.secretRef.name",
            ),
            (json!({"hostname": "a.b"}), "hostname"),
            (json!({"restartPolicy": "Never"}), "restartPolicy"),
            (json!({"activeDeadlineSeconds": 5}), "activeDeadlineSeconds"),
            (json!({"securityContext": {"runAsUser": -1}}), "securityContext.runAsUser"),
            (json!({"securityContext": {"foo": 1}}), "securityContext.foo"),
            (json!({"initContainers": [{"name": "main", "image": "i"}]}), "initContainers[0].name"),
            (json!({"hostAliases": [{"ip": "nowhere"}]}), "hostAliases[0].ip"),
            (json!({"dnsPolicy": "None"}), "dnsPolicy"),
            (json!({"containers": []}), "containers"),
        ],
    );
}

#[test]
fn invalid_services_and_configmaps_are_found() {
    let service = |port: &Value| {
        told(&json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [port]}}))
    };
    each(
        service,
        &[
            (json!({"port": 0}), "spec.ports[0].port"),
            (json!({"port": 65536}), "spec.ports[0].port"),
            (json!({"port": 1, "targetPort": -1}), "spec.ports[0].targetPort"),
            (json!({"port": 1, "name": "A B"}), "spec.ports[0].name"),
            (json!({"port": 1, "nodeport": 2}), "spec.ports[0].nodeport"),
        ],
    );
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a b": "c", "large": "x".repeat(1 << 20)}});
    let told = told(&config);
    assert!(
        told.len() == 2 && told[0].starts_with("data[\"a b\"]: ") && told[1].starts_with("data: has 1048577 "),
        "{told:?}"
    );
}

/// Returns the findings in a manifest with this kind and this spec.
fn of_kind(version: &str, kind: &str, spec: &Value) -> Vec<String> {
    told(&json!({"apiVersion": version, "kind": kind, "metadata": {"name": "w"}, "spec": spec}))
}

#[test]
fn unknown_fields_of_every_built_in_kind_are_found() {
    let template = |pod: &Value| {
        let mut spec = json!({"containers": [{"name": "main", "image": "i"}]});
        spec.as_object_mut().unwrap().extend(pod.as_object().unwrap().clone());
        json!({"metadata": {"labels": {"app": "w"}}, "spec": spec})
    };
    let set = |more: &Value, pod: &Value| {
        let mut spec = json!({"selector": {"matchLabels": {"app": "w"}}, "template": template(pod)});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        spec
    };
    let none = json!({});
    let job = json!({"template": template(&json!({"restartPolicy": "Never", "foo": 1}))});
    for (version, kind, spec, place) in [
        ("apps/v1", "StatefulSet", set(&json!({"serviceNam": "w"}), &none), "spec.serviceNam"),
        ("apps/v1", "StatefulSet", set(&none, &json!({"foo": 1})), "spec.template.spec.foo"),
        (
            "apps/v1",
            "StatefulSet",
            set(&none, &json!({"containers": [{"name": "main", "image": "i", "readinesProbe": {}}]})),
            "spec.template.spec.containers[0].readinesProbe",
        ),
        (
            "apps/v1",
            "StatefulSet",
            set(&json!({"volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": {"storageClas": "x"}}]}), &none),
            "spec.volumeClaimTemplates[0].spec.storageClas",
        ),
        ("apps/v1", "DaemonSet", set(&json!({"replicas": 1}), &none), "spec.replicas"),
        ("batch/v1", "Job", job.clone(), "spec.template.spec.foo"),
        (
            "batch/v1",
            "CronJob",
            json!({"schedule": "@daily", "jobTemplate": {"spec": job}}),
            "spec.jobTemplate.spec.template.spec.foo",
        ),
        ("policy/v1", "PodDisruptionBudget", json!({"maxUnavailabl": 1}), "spec.maxUnavailabl"),
        (
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            json!({"maxReplicas": 2, "metrics": [{"resource": {"nam": "cpu"}, "type": "Resource"}]}),
            "spec.metrics[0].resource.nam",
        ),
        (
            "networking.k8s.io/v1",
            "NetworkPolicy",
            json!({"podSelector": {}, "ingress": [{"form": []}]}),
            "spec.ingress[0].form",
        ),
        (
            "networking.k8s.io/v1",
            "Ingress",
            json!({"rules": [{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"services": {}}}]}}]}),
            "spec.rules[0].http.paths[0].backend.services",
        ),
    ] {
        let told = of_kind(version, kind, &spec);
        assert!(told.len() == 1 && told[0].starts_with(&format!("{place}: ")), "{kind} {place}: {told:?}");
    }
    let told = of_kind("policy/v1", "PodDisruptionBudget", &json!({"maxUnavailabl": 1}));
    assert!(told[0].ends_with("has no field \"maxUnavailabl\" here: did you mean maxUnavailable?"), "{told:?}");
}

#[test]
fn unknown_fields_pass_if_only_values_are_checked() {
    let manifest = deployment(&json!({"aFieldOfTomorrow": 1}), &json!({}));
    assert_eq!(check(&manifest, Checks::Values).len(), 0);
    assert_eq!(told(&manifest).len(), 1);
    assert_eq!(told(&json!({"apiVersion": "example.com/v1", "kind": "Deployment", "spec": {"replicas": -1}})), [""; 0]);
}

#[test]
fn only_ten_of_a_thousand_findings_are_reported() {
    let env: Vec<Value> = (0..1000).map(|_| json!({"name": "a=b"})).collect();
    assert_eq!(of_container(&json!({"env": env})).len(), 10);
}
