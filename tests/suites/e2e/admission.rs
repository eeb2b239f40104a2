//! The chart's admission policies: which users can activate policies, and which warnings users see.

use kaos_tests::case;
use kaos_tests::control_plane::User;
use kaos_tests::harness::samples::{agent, model_api};
use serde_json::{Value, json};

use crate::support::{Release, SYSTEM, USER, moved, recorded};

fn policy(name: &str, namespace: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"kaos.tools/policy": "package"}},
        "data": {"policy.yaml": "name: agent\nsettings: {image: registry.example/agent:2}\n"}})
}

#[tokio::test]
async fn writing_a_policy_needs_activate_and_a_namespace_with_policies_can_be_deleted() {
    let release = Release::install(&[]).await;
    let cluster = release.cluster;
    let file = |object: &Value| {
        let path = cluster.folder().join("policy.json");
        std::fs::write(&path, object.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let bind = |role: &str, namespace: &str| {
        let role = format!("--clusterrole={role}");
        let name = role.replace("--clusterrole=", "developer-");
        cluster.kubectl(&["create", "rolebinding", &name, &role, "--user=developer", "-n", namespace]).expect();
    };
    let own = release.world("own").await;
    let kubeconfig = cluster.kubeconfig_for("developer", &User::Developer.token()).unwrap();
    let developer = |arguments: &[&str]| cluster.kubectl_as(&kubeconfig, arguments);
    bind("edit", SYSTEM);
    bind("edit", "own");
    let may_write = |namespace: &str| cluster.may(User::Developer.name(), "create", "configmaps", namespace);
    own.until_true("the developer may write", async || may_write(SYSTEM) && may_write("own")).await;

    let company = file(&policy("company", SYSTEM));
    // Wait, because the API server applies new admission policies only after some moments.
    own.until_true("activation is guarded", async || !developer(&["create", "--dry-run=server", "-f", &company]).ok)
        .await;
    let refused = developer(&["create", "-f", &company]).expect_failure();
    assert!(refused.contains("developer may not activate policies in namespace kaos-system"), "{refused}");
    developer(&["create", "configmap", "plain", "-n", SYSTEM]).expect();
    developer(&["label", "configmap", "plain", "-n", SYSTEM, "some=label"]).expect();
    developer(&["label", "configmap", "plain", "-n", SYSTEM, "kaos.tools/policy=package"]).expect_failure();
    let settings = ["patch", "configmap", "kaos-operator-config", "-n", SYSTEM, "-p", r#"{"data": {"A": "b"}}"#];
    let dry = [&settings[..], &["--dry-run=server"]].concat();
    own.until_true("settings are guarded", async || !developer(&dry).ok).await;
    developer(&settings).expect_failure();
    // The developer may create this ConfigMap: in another namespace, a ConfigMap with this name contains no settings of
    // the operator.
    developer(&["create", "configmap", "kaos-operator-config", "-n", "own", "--dry-run=server"]).expect();
    cluster.kubectl(&["create", "-f", &company]).expect();
    // The developer may not remove the label either, because this would stop the policy, like deleting the ConfigMap.
    developer(&["label", "configmap", "company", "-n", SYSTEM, "kaos.tools/policy-"]).expect_failure();
    developer(&["delete", "configmap", "company", "-n", SYSTEM]).expect_failure();
    cluster.kubectl(&["create", "-f", &file(&policy("own", "own"))]).expect();
    // A ServiceAccount in another namespace has no special rights, even if it has the name of the operator's
    // ServiceAccount.
    let namesake = "system:serviceaccount:own:kaos-kaos-operator";
    let account = "--serviceaccount=own:kaos-kaos-operator";
    cluster.kubectl(&["create", "rolebinding", "namesake", "--clusterrole=edit", account, "-n", "own"]).expect();
    own.until_true("the namesake may write", async || cluster.may(namesake, "create", "configmaps", "own")).await;
    let posing = file(&policy("kaos-operator-config-fitted", "own"));
    let refused = cluster.kubectl(&["create", "-f", &posing, "--as", namesake]).expect_failure();
    assert!(refused.contains("may not activate policies in namespace own"), "{refused}");

    bind("kaos-kaos-operator-activate-policies", SYSTEM);
    let relabelled = ["label", "--dry-run=server", "configmap", "company", "-n", SYSTEM, "some=label"];
    own.until_true("the developer may activate", async || developer(&relabelled).ok).await;
    developer(&["label", "configmap", "company", "-n", SYSTEM, "some=label"]).expect();
    for verb in ["get", "list", "watch", "patch"] {
        let may = cluster.may(User::Developer.name(), verb, "policyrevisions.kaos.tools", SYSTEM);
        assert!(may, "`policy push`, `policy rollback` or a retry request needs the verb {verb}");
    }
    developer(&["delete", "configmap", "company", "plain", "-n", SYSTEM]).expect();
    // The user's right to activate policies is valid only in the namespace of the role binding.
    developer(&["delete", "configmap", "own", "-n", "own"]).expect_failure();
    cluster.kubectl(&["delete", "namespace", "own", "--wait=false"]).expect();
    own.until_gone("Namespace/own").await;
    let bindings = ["developer-edit", "developer-kaos-kaos-operator-activate-policies"];
    cluster.kubectl(&[&["delete", "rolebinding", "-n", SYSTEM], &bindings[..]].concat()).expect();
}

#[tokio::test]
async fn an_approval_needs_the_verb_approve_and_the_users_own_name() {
    let release = Release::install(&[]).await;
    let (cluster, system) = (release.cluster, release.over(SYSTEM));
    let record = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "PolicyRevision",
        "metadata": {"name": "held-1", "namespace": SYSTEM},
        "spec": {"source": {"namespace": SYSTEM, "configMap": "held"}, "packageDigest": "sha256:0"}});
    let path = cluster.folder().join("held.json");
    std::fs::write(&path, record.to_string()).unwrap();
    cluster.kubectl(&["create", "-f", path.to_str().unwrap()]).expect();
    let kubeconfig = cluster.kubeconfig_for("developer", &User::Developer.token()).unwrap();
    let annotate = |annotation: &str, more: &[&str]| {
        let annotate = ["annotate", "policyrevision", "held-1", "-n", SYSTEM, "--overwrite", annotation];
        cluster.kubectl_as(&kubeconfig, &[&annotate, more].concat())
    };
    let bind = |role: &str| {
        let (name, role) = (format!("approver-{role}"), format!("--clusterrole=kaos-kaos-operator-{role}"));
        cluster.kubectl(&["create", "rolebinding", &name, &role, "--user=developer", "-n", SYSTEM]).expect();
    };
    let approved = |by: &str| format!("kaos.tools/approved-by={by}");
    let dry = ["--dry-run=server"];
    bind("activate-policies");
    let may_annotate = async || annotate("kaos.tools/retry=1", &dry).ok;
    system.until_true("the developer may request a retry", may_annotate).await;
    let is_guarded = async || !annotate(&approved("developer"), &dry).ok;
    system.until_true("approvals are guarded", is_guarded).await;
    let refused = annotate(&approved("developer"), &[]).expect_failure();
    assert!(refused.contains("developer may not approve policies in namespace kaos-system"), "{refused}");
    annotate("kaos.tools/retry=2", &[]).expect();
    let refused = annotate("kaos.tools/approved-for=2026-01-01T00:00:00Z", &[]).expect_failure();
    assert!(refused.contains("developer may not approve policies"), "{refused}");
    let mut made = record.clone();
    made["metadata"] =
        json!({"name": "held-2", "namespace": SYSTEM, "annotations": {"kaos.tools/approved-by": "developer"}});
    std::fs::write(&path, made.to_string()).unwrap();
    cluster.kubectl_as(&kubeconfig, &["create", "-f", path.to_str().unwrap()]).expect_failure();

    let moved = json!({"spec": {"source": {"configMap": "other"}}}).to_string();
    let patch = ["patch", "policyrevision", "held-1", "-n", SYSTEM, "--type=merge", "-p", moved.as_str()];
    let refused = cluster.kubectl_as(&kubeconfig, &patch).expect_failure();
    assert!(refused.contains("the spec of a PolicyRevision must not change"), "{refused}");

    bind("approve-policies");
    let may_approve = async || annotate(&approved("developer"), &dry).ok;
    system.until_true("the developer may approve", may_approve).await;
    let refused = annotate(&approved("alice"), &[]).expect_failure();
    assert!(refused.contains("must be your own user name, developer"), "{refused}");
    annotate(&approved("developer"), &[]).expect();
    annotate("kaos.tools/approved-for=2026-01-01T00:00:00Z", &[]).expect();
    let refused = annotate("kaos.tools/rollout-by=alice", &[]).expect_failure();
    assert!(refused.contains("must be your own user name, developer"), "{refused}");
    annotate("kaos.tools/rollout-by=developer", &[]).expect();
    annotate("kaos.tools/rollout=pause", &[]).expect();
    cluster.kubectl(&["delete", "rolebinding", "approver-approve-policies", "-n", SYSTEM]).expect();
    let is_guarded = async || !annotate("kaos.tools/approved-for=later", &dry).ok;
    system.until_true("the developer may no longer approve", is_guarded).await;
    let refused = annotate("kaos.tools/rollout=promote", &[]).expect_failure();
    assert!(refused.contains("developer may not approve policies"), "{refused}");
    let refused = annotate("kaos.tools/approved-by-", &[]).expect_failure();
    assert!(refused.contains("developer may not approve policies"), "{refused}");
    cluster.kubectl(&["delete", "policyrevision", "held-1", "-n", SYSTEM]).expect();
    cluster.kubectl(&["delete", "rolebinding", "approver-activate-policies", "-n", SYSTEM]).expect();
}

#[tokio::test]
async fn only_the_operator_writes_the_copy_of_its_settings_and_the_record_of_settled_objects() {
    let release = Release::install(&[]).await;
    let (cluster, system) = (release.cluster, release.over(SYSTEM));
    let kept = "kaos-operator-config-fitted";
    let kubeconfig = cluster.kubeconfig_for("developer", &User::Developer.token()).unwrap();
    let developer = |arguments: &[&str]| cluster.kubectl_as(&kubeconfig, &[arguments, &["-n", SYSTEM]].concat());
    let bind = ["create", "rolebinding", "developer-keeps", "--clusterrole=edit", "--user=developer", "-n", SYSTEM];
    cluster.kubectl(&bind).expect();
    let may_write = async || cluster.may(User::Developer.name(), "create", "configmaps", SYSTEM);
    system.until_true("the developer may write", may_write).await;
    // The developer may not create the ConfigMap of the last good settings: an operator would read the developer's
    // content at its start.
    let create = ["create", "configmap", kept, "--from-literal=DEFAULT_AGENT_IMAGE=theirs", "--dry-run=server"];
    system.until_true("the name is guarded", async || !developer(&create).ok).await;
    assert!(developer(&create).expect_failure().contains("may not activate policies"));
    let (settled, dry) = ("kaos-operator-settled-0", "--dry-run=server");
    let refused = developer(&["create", "configmap", settled, dry]).expect_failure();
    assert!(refused.contains("may not activate policies"), "{refused}");

    let _operator = release.working_operator().await;
    let own = system.look("ConfigMap/kaos-operator-config").await["data"].clone();
    system
        .until("the operator has stored its settings", &format!("ConfigMap/{kept}"), |kept| kept["data"] == own)
        .await;
    let patch = ["-p", r#"{"data": {"DEFAULT_AGENT_IMAGE": "theirs"}}"#, "--dry-run=server"];
    developer(&[&["patch", "configmap", kept], &patch[..]].concat()).expect_failure();
    developer(&["delete", "configmap", kept, "--dry-run=server"]).expect_failure();
    let operator =
        |name: &str| cluster.kubectl(&[&["patch", "configmap", name, "-n", SYSTEM, "--as", USER], &patch[..]].concat());
    operator(kept).expect();
    cluster.kubectl(&["create", "configmap", settled, "-n", SYSTEM]).expect();
    operator(settled).expect();
    cluster.kubectl(&["delete", "configmap", settled, "-n", SYSTEM, "--as", USER, dry]).expect();
    cluster.kubectl(&["delete", "configmap", settled, "-n", SYSTEM]).expect();
    // The operator can write its last good settings, but it can neither change its own settings nor activate a policy.
    operator("kaos-operator-config").expect_failure();
    let label = ["label", "configmap", kept, "-n", SYSTEM, "--as", USER, "kaos.tools/policy=package"];
    let refused = cluster.kubectl(&[&label[..], &["--dry-run=server"]].concat()).expect_failure();
    assert!(refused.contains("may not activate policies"), "{refused}");
    cluster.kubectl(&["delete", "rolebinding", "developer-keeps", "-n", SYSTEM]).expect();
}

#[tokio::test]
async fn the_roles_edit_and_view_cover_the_kinds_but_not_the_verb_activate() {
    let release = Release::install(&[]).await;
    let may = |verb: &str, what: &str, role: &str| {
        // Wait, because a controller adds the rules to an aggregated role only some time after the role's creation.
        let role = release.cluster.kubectl(&["get", "clusterrole", role, "-o", "json"]).expect();
        let role: Value = serde_json::from_str(&role).unwrap();
        role["rules"].as_array().into_iter().flatten().any(|rule| {
            let has = |field: &str, word: &str| rule[field].as_array().unwrap().iter().any(|item| item == word);
            has("apiGroups", "kaos.tools") && has("resources", what) && has("verbs", verb)
        })
    };
    let world = release.over(SYSTEM);
    let together =
        async || may("create", "agents", "edit") && may("create", "agents", "admin") && may("get", "agents", "view");
    world.until_true("the aggregated roles are complete", together).await;
    assert!(
        !may("create", "agents", "view")
            && !may("activate", "policies", "edit")
            && !may("activate", "policies", "admin")
    );
}

#[tokio::test]
async fn specs_that_policies_refuse_get_a_warning_and_valid_ones_none() {
    let release = Release::install(&[]).await;
    let world = release.world("warned").await;
    let apply = |objects: &[Value], flags: &[&str]| {
        let file = release.cluster.folder().join("warned.json");
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        std::fs::write(&file, list.to_string()).unwrap();
        let command = ["apply", "--server-side", "-n", "warned", "-f", file.to_str().unwrap()];
        release.cluster.kubectl(&[&command, flags].concat())
    };
    let mut nothing = model_api("llm");
    nothing["spec"] = json!({"mode": "Proxy"});
    let all = [
        (nothing, "spec.proxyConfig: mode Proxy requires proxyConfig"),
        (
            json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "MCPServer", "metadata": {"name": "echo"},
            "spec": {"runtime": "custom"}}),
            "spec.container.image: custom runtime requires container.image",
        ),
        (
            agent("a", "llm", &json!({"agentNetwork": {"access": ["a"]}})),
            "spec.agentNetwork.access: the policy ignores the entry with the Agent's own name",
        ),
    ];
    // Wait until every kind gives a warning: the API server begins to apply the admission policies of each kind
    // separately, and with a delay.
    let dry = |object: &Value| apply(std::slice::from_ref(object), &["--dry-run=server"]);
    let warns = async || all.iter().all(|(object, _)| dry(object).err.contains("Warning: "));
    world.until_true("the API server warns", warns).await;
    for (object, warning) in &all {
        let said = apply(std::slice::from_ref(object), &[]);
        assert!(said.ok && said.err.contains("Warning: ") && said.err.contains(warning), "{said:?}");
        assert!(!world.look(&crate::support::at(object)).await.is_null());
    }
    // The API server checks the types in the admission policies: it reports expressions that do not fit the
    // CustomResourceDefinitions.
    let rules = release.cluster.kubectl(&["get", "validatingadmissionpolicies", "-o", "json"]).expect();
    let rules: Value = serde_json::from_str(&rules).unwrap();
    for policy in rules["items"].as_array().unwrap() {
        let found = &policy["status"]["typeChecking"]["expressionWarnings"];
        assert!(found.is_null(), "{}: {found:#}", policy["metadata"]["name"]);
    }

    let mut good: Vec<Value> =
        ["agent-sample-1-simple", "agent-sample-2-multi", "agent-sample-3-hierarchy", "agent-config-all"]
            .iter()
            .flat_map(|sample| moved(&recorded(sample).input, "warned"))
            .collect();
    good.extend(case::documents("../docs/examples/team.yaml".as_ref()).unwrap());
    for object in &mut good {
        object["metadata"]["namespace"] = json!("warned");
    }
    let said = apply(&good, &["--dry-run=server", "--force-conflicts"]);
    assert!(said.ok && !said.err.contains("Warning"), "{said:?}");
}
