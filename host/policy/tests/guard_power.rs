//! Tests privileges that a plan raises, with and without permission. The user's own spec, the settings or a grant can
//! give the permission.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::needless_pass_by_value)]

use crate::widget::{config, deployment, planned, rules};
use kaos_policy::{
    contract::Refusal,
    failure::Failure,
    guard::{Rule, UserPrivileges},
    render::{Rendered, Verdict},
    settings::{Layer, Origin},
};
use serde_json::{Value, json};

/// Renders a pod that does not come from the user's spec.
fn run(file: &str, pod: Value, user: Value) -> Rendered {
    planned(file, &[], &json!([deployment(pod)]), user, UserPrivileges::Allowed)
}

pub(crate) fn pod(more: Value) -> Value {
    let mut pod = json!({"containers": [{"name": "main"}]});
    pod.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    pod
}

pub(crate) fn container(more: Value) -> Value {
    let mut container = json!({"name": "main"});
    container.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"containers": [container]})
}

#[test]
fn privilege_needs_the_users_spec_for_the_same_container_or_a_grant() {
    let raised = json!({"containers": [{"name": "main", "securityContext": {"privileged": true}}],
        "volumes": [{"name": "h", "hostPath": {"path": "/"}}]});
    let plan = json!([deployment(raised)]);
    let run = |file: &str, own: Value, rule: UserPrivileges| planned(file, &[], &plan, json!({"podSpec": own}), rule);
    let own = json!({"containers": [{"name": "main", "securityContext": {"privileged": true}}],
        "volumes": [{"name": "h", "hostPath": {"path": "/"}}]});
    let sidecar = json!({"containers": [{"name": "other", "securityContext": {"privileged": true}}],
        "volumes": [{"name": "h", "hostPath": {"path": "/"}}]});
    assert_eq!(rules(&run("{}", json!({}), UserPrivileges::Allowed)), [Rule::NoPrivilege; 2]);
    assert!(run("{}", own.clone(), UserPrivileges::Allowed).planned().is_some());
    assert_eq!(rules(&run("{}", sidecar, UserPrivileges::Allowed)), [Rule::NoPrivilege]);
    let granted = "grants: {privileges: [privileged, hostPath]}";
    assert!(run(granted, json!({}), UserPrivileges::Forbidden).planned().is_some());
}

#[test]
fn each_field_that_raises_privilege_has_its_grant() {
    let volume = |of: &str| pod(json!({"volumes": [{"name": "v", of: {"x": "y"}}]}));
    let projected = |source: Value| pod(json!({"volumes": [{"name": "v", "projected": {"sources": [source]}}]}));
    let on_node = |of: &str| json!({"securityContext": {of: {"type": "Localhost", "localhostProfile": "weak.json"}}});
    let claimed =
        |spec: Value| pod(json!({"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}]}));
    for (grant, pod) in [
        ("hostNetwork", pod(json!({"hostNetwork": true}))),
        ("nodeName", pod(json!({"nodeName": "control-plane"}))),
        ("priorityClass", pod(json!({"priorityClassName": "system-node-critical"}))),
        ("runtimeClass", pod(json!({"runtimeClassName": "other"}))),
        ("serviceAccounts", pod(json!({"serviceAccountName": "admin"}))),
        ("serviceAccounts", pod(json!({"securityContext": {"windowsOptions": {"gmsaCredentialSpecName": "admin"}}}))),
        ("serviceAccounts", container(json!({"securityContext": {"windowsOptions": {"gmsaCredentialSpec": "{}"}}}))),
        ("unconfined", pod(on_node("seccompProfile"))),
        ("unconfined", container(on_node("appArmorProfile"))),
        ("otherVolumes", volume("gitRepo")),
        ("otherVolumes", volume("flexVolume")),
        ("otherVolumes", volume("nfs")),
        ("otherVolumes", volume("of tomorrow")),
        ("otherVolumes", volume("a\"]b.c[0]")),
        ("hostPath", volume("hostPath")),
        ("probeHosts", container(json!({"livenessProbe": {"httpGet": {"host": "169.254.169.254", "port": 80}}}))),
        ("probeHosts", container(json!({"lifecycle": {"preStop": {"tcpSocket": {"host": "db", "port": 80}}}}))),
        ("hostPorts", container(json!({"ports": [{"containerPort": 80, "hostPort": 80}]}))),
        ("addedCapabilities", container(json!({"securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}}))),
        ("resourceClaims", pod(json!({"resourceClaims": [{"name": "gpu", "resourceClaimName": "somebodys"}]}))),
        ("tokenAudiences", projected(json!({"serviceAccountToken": {"path": "t", "audience": "sts.amazonaws.com"}}))),
        ("projectedSources", projected(json!({"podCertificate": {"signerName": "a.example/b", "keyType": "ED25519"}}))),
        ("projectedSources", projected(json!({"clusterTrustBundle": {"name": "b", "path": "p"}}))),
        ("projectedSources", projected(json!({"sourceOfTomorrow": {"name": "b"}}))),
        ("volumeName", claimed(json!({"volumeName": "left-behind"}))),
    ] {
        assert_eq!(rules(&run("{}", pod.clone(), json!({}))), [Rule::NoPrivilege], "{grant}: {pod}");
        let granted = run(&format!("grants: {{privileges: [{grant}]}}"), pod.clone(), json!({}));
        assert!(granted.planned().is_some(), "{grant}: {:?}", granted.verdict);
        let own = run("{}", pod.clone(), json!({"podSpec": pod}));
        assert!(own.planned().is_some(), "the user's own spec allows {grant}: {:?}", own.verdict);
    }
}

#[test]
fn volumes_of_a_pods_own_account_and_namespace_raise_no_privilege() {
    let sources = json!([{"serviceAccountToken": {"path": "t", "expirationSeconds": 600}}, {"configMap": {"name": "c"}},
        {"downwardAPI": {"items": []}}]);
    let claim = json!({"accessModes": ["ReadWriteOnce"], "volumeName": ""});
    let volumes = json!([{"name": "v", "projected": {"sources": sources}},
        {"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}]);
    let rendered = run("{}", pod(json!({"volumes": volumes, "resourceClaims": []})), json!({}));
    assert!(rendered.planned().is_some(), "{:?}", rendered.verdict);
}

#[test]
fn external_services_need_the_users_spec_a_setting_or_a_grant() {
    let layers = |origin: Origin, of: &str| [Layer::tree(origin, "widget", json!({"security": {"serviceType": of}}))];
    for (of, grant) in [("LoadBalancer", "loadBalancers"), ("NodePort", "nodePorts")] {
        let plan = json!([{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "w"}, "spec": {"type": of}}]);
        let run =
            |file: &str, layers: &[Layer], user: Value| planned(file, layers, &plan, user, UserPrivileges::Allowed);
        let from = |source: &str| json!([["spec.type", source]]);
        let refused = run("{}", &[], json!({"title": of, "origins": from("spec.title")}));
        assert_eq!(rules(&refused), [Rule::NoPrivilege], "{of}");
        let told = refused.failed().unwrap().to_string();
        assert!(told.contains("(Service w) spec.type: ") && told.contains(&format!("privilege {grant}")), "{told}");
        assert!(run(&format!("grants: {{privileges: [{grant}]}}"), &[], json!({})).planned().is_some(), "{of}");
        assert!(
            run("{}", &[], json!({"service": {"type": of}, "origins": from("spec.service.type")})).planned().is_some(),
            "{of}"
        );
        assert_eq!(
            rules(&run("{}", &[], json!({"service": {"type": of}}))),
            [Rule::NoPrivilege],
            "nothing is declared"
        );
        let setting = || json!({"origins": from("settings.security.serviceType")});
        assert!(run("{}", &layers(Origin::OperatorConfig, of), setting()).planned().is_some(), "{of}");
        let tenant = run("{}", &layers(Origin::NamespacePolicy("n/p".into()), of), setting());
        assert!(matches!(tenant.verdict, Verdict::Refused(Refusal::Invalid(_))), "{of}: {:?}", tenant.verdict);
    }
    let inner =
        json!([{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "w"}, "spec": {"type": "ClusterIP"}}]);
    assert!(planned("{}", &[], &inner, json!({}), UserPrivileges::Allowed).planned().is_some());
}

#[test]
fn breaches_name_the_real_path_of_a_privilege_or_secret() {
    let volumes = json!([{"name": "c", "configMap": {"name": "c"}}, {"name": "h", "hostPath": {"path": "/"}},
        {"name": "p", "projected": {"sources": [{"configMap": {"name": "c"}}, {"secret": {"name": "s"}}]}},
        {"name": "m", "persistentVolumeClaim": {"claimName": "m"}}, {"name": "s", "secret": {"secretName": "s"}}]);
    let side = json!({"name": "side", "ports": [{"containerPort": 1}, {"containerPort": 2, "hostPort": 2}],
        "envFrom": [{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}],
        "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]});
    let pod = json!({"containers": [{"name": "main"}, side], "volumes": volumes, "imagePullSecrets": [{"name": "s"}]});
    let rendered = run("{}", pod, json!({}));
    let Some(Failure::Guard(breaches)) = rendered.failed().map(|failed| &*failed.failure) else { panic!() };
    let paths: Vec<_> = breaches.iter().filter_map(|it| it.path.strip_prefix("manifests[0] (Deployment w) ")).collect();
    let within = "spec.template.spec";
    for path in [
        "volumes[1].hostPath",
        "containers[1].ports[1].hostPort",
        "volumes[2].projected.sources[1].secret.name",
        "volumes[3].persistentVolumeClaim.claimName",
        "volumes[4].secret.secretName",
        "imagePullSecrets[0].name",
        "containers[1].envFrom[1].secretRef.name",
        "containers[1].env[0].valueFrom.secretKeyRef.name",
    ] {
        assert!(paths.contains(&&*format!("{within}.{path}")), "{path} in {paths:#?}");
    }
}

#[test]
fn a_forbidden_privilege_is_reported_to_the_user_who_asked_for_it() {
    let refused = |pod: Value, user: Value| {
        let rendered = planned("{}", &[], &json!([deployment(pod)]), user, UserPrivileges::Forbidden);
        match rendered.verdict {
            Verdict::Refused(Refusal::Invalid(violations)) => violations,
            other => panic!("{other:?}"),
        }
    };
    let own = json!({"containers": [{"name": "other"}, {"name": "main", "securityContext": {"privileged": true}}],
        "volumes": [{"name": "c", "configMap": {"name": "c"}}, {"name": "h", "hostPath": {"path": "/"}}]});
    let mut told = refused(own.clone(), json!({"podSpec": own}));
    told.sort_by(|a, b| a.path.cmp(&b.path));
    let paths: Vec<_> = told.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(paths, ["spec.podSpec.containers[1].securityContext.privileged", "spec.podSpec.volumes[1].hostPath"]);
    let message = &told[1].message;
    assert!(
        message.starts_with("asks for privilege hostPath, but the operator's --user-privileges=refused forbids this")
            && message.contains("remove the field")
            && message.contains("pods that have the privilege keep running"),
        "{message}"
    );
    // If the policy itself adds privileges, the author of the policy must correct the policy.
    let plan = json!([deployment(pod(json!({"hostNetwork": true})))]);
    assert_eq!(rules(&planned("{}", &[], &plan, json!({}), UserPrivileges::Forbidden)), [Rule::NoPrivilege]);
}

#[test]
fn annotations_and_services_raise_privilege_too() {
    for (grant, key, value) in [
        ("unconfined", "container.apparmor.security.beta.kubernetes.io/main", "unconfined"),
        ("serviceAccounts", "iam.amazonaws.com/role", "admin"),
    ] {
        let mut plan = deployment(container(json!({})));
        plan["spec"]["template"]["metadata"]["annotations"] = json!({key: value});
        let run = |file: &str| planned(file, &[], &json!([plan]), json!({}), UserPrivileges::Allowed);
        assert_eq!(rules(&run("{}")), [Rule::NoPrivilege], "{key}");
        assert!(run(&format!("grants: {{privileges: [{grant}]}}")).planned().is_some());
    }
    for spec in [json!({"externalIPs": ["8.8.8.8"]}), json!({"type": "ExternalName", "externalName": "x.example"})] {
        let service = json!([{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "w"}, "spec": spec}]);
        let run = |file: &str| planned(file, &[], &service, json!({}), UserPrivileges::Allowed);
        assert_eq!(rules(&run("{}")), [Rule::NoPrivilege], "{service}");
        assert!(run("grants: {privileges: [externalTraffic]}").planned().is_some());
    }
}

#[test]
fn cloud_roles_and_pod_annotations_in_foreign_kinds_raise_privilege() {
    let account = |key: &str| {
        let metadata = json!({"name": "own", "annotations": {key: "admin"}});
        json!([{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}])
    };
    let jobs = |pods: Value| {
        json!([{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "w"},
            "spec": {"replicatedJobs": [{"name": "a", "template": {"spec": {"template": pods}}}]}}])
    };
    let metadata = |key: &str, value: &str| json!({"annotations": {key: value}});
    let beside = |key: &str, value: &str| jobs(json!({"metadata": metadata(key, value), "spec": pod(json!({}))}));
    let within = |key: &str, value: &str| jobs(json!({"spec": pod(json!({"metadata": metadata(key, value)}))}));
    let run = |file: &str, plan: &Value, user: Value| planned(file, &[], plan, user, UserPrivileges::Allowed);
    for key in [
        "iam.amazonaws.com/role",
        "eks.amazonaws.com/role-arn",
        "iam.gke.io/gcp-service-account",
        "azure.workload.identity/client-id",
    ] {
        let job = "spec.replicatedJobs[0].template.spec.template";
        for (plan, at) in [
            (account(key), "metadata.annotations".to_owned()),
            (beside(key, "admin"), format!("{job}.metadata.annotations")),
            (within(key, "admin"), format!("{job}.spec.metadata.annotations")),
        ] {
            assert_eq!(rules(&run("{}", &plan, json!({}))), [Rule::NoPrivilege], "{plan}");
            assert!(run("grants: {privileges: [serviceAccounts]}", &plan, json!({})).planned().is_some(), "{plan}");
            let own = json!({"annotations": {key: "admin"}, "origins": [[at, "spec.annotations"]]});
            assert!(run("{}", &plan, own).planned().is_some(), "the user's own spec contains the value: {plan}");
        }
    }
    let unconfined = beside("container.apparmor.security.beta.kubernetes.io/main", "unconfined");
    assert_eq!(rules(&run("{}", &unconfined, json!({}))), [Rule::NoPrivilege]);
    assert!(run("{}", &account("example.com/role"), json!({})).planned().is_some());
}

#[test]
fn token_secrets_need_the_grant_for_service_accounts() {
    let secret = |of: &str, annotations: Value| {
        let metadata = json!({"name": "tok", "annotations": annotations});
        json!([{"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": of}])
    };
    let account = json!({"kubernetes.io/service-account.name": "cluster-admin-sa"});
    for plan in [
        secret("kubernetes.io/service-account-token", json!({})),
        secret("Opaque", account),
        secret("bootstrap.kubernetes.io/token", json!({})),
    ] {
        let run = |file: &str| planned(file, &[], &plan, json!({}), UserPrivileges::Allowed);
        assert_eq!(rules(&run("{}")), [Rule::NoPrivilege]);
        assert!(run("grants: {privileges: [serviceAccounts]}").planned().is_some());
    }
    assert!(planned("{}", &[], &secret("Opaque", json!({})), json!({}), UserPrivileges::Allowed).planned().is_some());
}

#[test]
fn secrets_and_volume_claims_need_the_users_spec_a_grant_or_the_same_plan() {
    let uses = [
        ("volumes[0].secret.secretName", pod(json!({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}))),
        (
            "volumes[0].projected.sources[0].secret.name",
            pod(json!({"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}]})),
        ),
        ("imagePullSecrets[0].name", pod(json!({"imagePullSecrets": [{"name": "s"}]}))),
        ("containers[0].envFrom[0].secretRef.name", container(json!({"envFrom": [{"secretRef": {"name": "s"}}]}))),
    ];
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    for (at, pod) in uses {
        let from = |source: &str| json!([[format!("spec.template.spec.{at}"), source]]);
        let title = json!({"title": "s", "origins": from("spec.title")});
        let undeclared = json!({"tokenSecretRef": {"name": "s", "key": "k"}});
        for own in [json!({}), title, undeclared] {
            assert_eq!(rules(&run("{}", pod.clone(), own.clone())), [Rule::NamedReferences], "{pod} {own}");
        }
        assert!(run("grants: {secrets: [s]}", pod.clone(), json!({})).planned().is_some());
        let declared = from("spec.tokenSecretRef.name");
        for own in [
            json!({"tokenSecretRef": {"name": "s", "key": "k"}, "origins": declared}),
            json!({"secrets": ["a", "s"], "origins": from("spec.secrets[1]")}),
            json!({"podSpec": pod}),
        ] {
            assert!(run("{}", pod.clone(), own.clone()).planned().is_some(), "{own}");
        }
        let plan = json!([secret, deployment(pod)]);
        assert!(planned("{}", &[], &plan, json!({}), UserPrivileges::Allowed).planned().is_some());
    }
    let claim = pod(json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}));
    assert_eq!(rules(&run("{}", claim.clone(), json!({}))), [Rule::NamedReferences]);
    assert!(run("grants: {persistentVolumeClaims: [c]}", claim.clone(), json!({})).planned().is_some());
    let origins = json!([["spec.template.spec.volumes[name=\"v\"]", "spec.storage"]]);
    let own = json!({"storage": {"persistentVolumeClaim": {"claimName": "c"}}, "origins": origins});
    assert!(run("{}", claim, own).planned().is_some());
}

#[test]
fn the_users_values_are_recognized_after_merging_and_cleaning() {
    let se_linux = |options: Value| json!({"securityContext": {"seLinuxOptions": options}});
    let unconfined = |profile: Value| pod(json!({"securityContext": {"seccompProfile": profile}}));
    let host = |path: Value| pod(json!({"volumes": [{"name": "h", "hostPath": path}]}));
    for (planned, own) in [
        (host(json!({"path": "/x"})), json!({"podSpec": host(json!({"path": "/x", "type": null}))})),
        (
            unconfined(json!({"type": "Unconfined"})),
            json!({"podSpec": unconfined(json!({"type": "Unconfined", "localhostProfile": null}))}),
        ),
        (
            container(se_linux(json!({"user": "u", "level": "s0"}))),
            json!({"container": se_linux(json!({"user": "u"})),
                "podSpec": container(se_linux(json!({"level": "s0"})))}),
        ),
    ] {
        let rendered = run("{}", planned, own);
        assert!(rendered.planned().is_some(), "{:?}", rendered.verdict);
    }
}

#[test]
fn a_value_for_no_particular_container_applies_to_the_main_one() {
    let own = || json!({"container": {"securityContext": {"privileged": true}}});
    let privileged = |name: &str| json!({"name": name, "securityContext": {"privileged": true}});
    assert!(run("{}", json!({"containers": [privileged("main"), {"name": "b"}]}), own()).planned().is_some());
    let beside = json!({"containers": [{"name": "main"}, privileged("b")]});
    assert_eq!(rules(&run("{}", beside, own())), [Rule::NoPrivilege]);
    let before = json!({"containers": [{"name": "main"}], "initContainers": [privileged("b")]});
    assert_eq!(rules(&run("{}", before, own())), [Rule::NoPrivilege]);
}

#[test]
fn the_search_stops_after_twenty_breaches() {
    let ports: Vec<Value> = (1..5000).map(|port| json!({"containerPort": port, "hostPort": port})).collect();
    let spec: Vec<Value> = (0..2000).map(|i| json!({"hostPort": 10_000 + i})).collect();
    let told = rules(&run("{}", container(json!({"ports": ports})), json!({"list": spec})));
    assert_eq!(told, [Rule::NoPrivilege; 20]);
    let many: Vec<Value> = (0..60).map(|_| config("same")).collect();
    assert_eq!(rules(&planned("{}", &[], &json!(many), json!({}), UserPrivileges::Allowed)).len(), 20);
}
