//! Tests packages that the gate refuses with a reason, while other policies keep serving.

use std::collections::BTreeSet;

use kaos_operator::group_kind::GroupKind;
use kaos_operator::rbac::Scope;
use kaos_policy::manifest::Privilege;
use kaos_tests::harness::{Scenario, World, play, samples};
use serde_json::{Value, json};

use crate::support::{
    define, first_edition_serves, namespace, own_config, package, package_in, restart_writes_nothing, revisions,
    scenario, settings, until_edition, until_state, widget, widget_waits,
};

#[test]
fn a_candidate_that_fails_the_gate_leaves_the_active_revision_unchanged() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        let mut broken = package("widgets", "2", "");
        broken["binaryData"]["policy.wasm.gz"] = json!("AGFzbQ==");
        world.apply(&broken).await;
        let refused = until_state(world, "widgets", "Refused").await;
        assert_eq!(refused["status"]["reason"], "WrongDigest", "{refused}");
        assert!(refused["status"]["message"].as_str().unwrap().contains("policy.yaml pins"), "{refused}");
        world.quiet().await;
        assert_eq!(world.look("ConfigMap/w").await["data"]["edition"], "1");
        until_state(world, "widgets", "Active").await;
        world.apply(&package("widgets", "3", "")).await;
        until_edition(world, "ConfigMap/w", "3").await;
    });
}

#[test]
fn invalid_settings_are_refused_by_name() {
    play(scenario(), async |world| {
        define(world).await;
        world.apply(&package("widgets", "1", "settings: {size: 99}")).await;
        let refused = until_state(world, "widgets", "Refused").await;
        assert_eq!(refused["status"]["reason"], "BadSettings");
        world.apply(&settings("nobody", "{name: nobody, settings: {size: 1}}")).await;
        let refused = until_state(world, "nobody", "Refused").await;
        assert_eq!(refused["status"]["reason"], "NoSuchPolicy");
        world.apply(&package("widgets", "1", "")).await;
        until_state(world, "widgets", "Active").await;
        world.apply(&settings("tight", "{name: widget, settings: {size: large}}")).await;
        let refused = until_state(world, "tight", "Refused").await;
        assert!(refused["status"]["message"].as_str().unwrap().contains("size"), "{refused}");
    });
}

#[test]
fn a_package_waits_while_the_operators_settings_are_invalid() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.apply(&own_config("ten")).await;
        world.quiet().await;
        world.apply(&package("widgets", "2", "")).await;
        let waits = until_state(world, "widgets", "Pending").await;
        assert_eq!(waits["status"]["reason"], "BadSettings");
        assert!(waits["status"]["message"].as_str().unwrap().contains("kaos-operator-config"), "{waits}");
        assert_eq!(world.look("ConfigMap/w").await["data"]["edition"], "1");
        world.apply(&own_config("6")).await;
        let made = until_edition(world, "ConfigMap/w", "2").await;
        assert_eq!(made["data"]["size"], "6");
    });
}

#[test]
fn settings_installed_before_their_policy_apply_once_it_serves() {
    play(scenario(), async |world| {
        widget_waits(world).await;
        world.apply(&settings("before", "{name: widget, settings: {size: 4}}")).await;
        until_state(world, "before", "Refused").await;
        world.apply(&package("widgets", "1", "")).await;
        world.until("the settings apply", "ConfigMap/w", |live| live["data"]["size"] == "4").await;
        world.quiet().await;
        restart_writes_nothing(world).await;
        until_state(world, "before", "Active").await;
    });
}

#[test]
fn a_package_lists_its_missing_rights_and_waits_for_them() {
    play(scenario().idle(), async |world| {
        define(world).await;
        world.grant_what_is_printed().await;
        world.start().await;
        world.apply(&widget("w", &json!({}))).await;
        world.apply(&package("widgets", "1", "")).await;
        let revision = until_state(world, "widgets", "NotPermitted").await;
        let message = revision["status"]["message"].as_str().unwrap();
        assert!(message.contains("widgets.test.example.com"), "{message}");
        assert!(message.contains("the ClusterRole that `kaos-operator policy pack` prints"), "{message}");
        // The chart is not installed, so no aggregated ClusterRole adds this ClusterRole to the operator's rights. The
        // message must contain the command that creates the missing binding.
        let role = "kaos-policy-widget";
        let command = format!(
            "kubectl create clusterrolebinding {role} --clusterrole={role} --serviceaccount=kaos-system:NAME`, \
             where NAME"
        );
        assert!(message.contains(&command), "{message}");
        let api = "rbac.authorization.k8s.io";
        let rule = json!({"apiGroups": ["test.example.com"], "resources": ["*"], "verbs": ["*"]});
        let labels = json!({"rbac.kaos.tools/aggregate-to-operator": "true"});
        world
            .apply(&json!({"apiVersion": format!("{api}/v1"), "kind": "ClusterRole",
                "metadata": {"name": role, "labels": labels}, "rules": [rule]}))
            .await;
        world.quiet().await;
        until_state(world, "widgets", "NotPermitted").await;
        world
            .apply(&json!({"apiVersion": format!("{api}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": role},
                "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": "kaos-operator", "namespace": "kaos-system"}]}))
            .await;
        until_edition(world, "ConfigMap/w", "1").await;
        until_state(world, "widgets", "Active").await;
    });
}

#[test]
fn a_deleted_listed_namespace_needs_no_rights() {
    let listed = scenario().idle().within("test").tuned(|options| {
        options.namespaces = Scope::Listed(["gone", "test"].map(str::to_owned).into());
    });
    play(listed, async |world| {
        define(world).await;
        world.apply(&namespace("gone")).await;
        world.grant_what_is_printed().await;
        world.delete("Namespace/gone").await;
        world.until_gone("Namespace/gone").await;
        world.start().await;
        world.apply(&widget("w", &json!({}))).await;
        world.apply(&package("widgets", "1", "")).await;
        let revision = until_state(world, "widgets", "NotPermitted").await;
        let message = revision["status"]["message"].as_str().unwrap();
        let remedy = "the Roles that `kaos-operator policy pack --namespaces gone,test --service-account NAME` prints";
        assert!(message.contains(remedy), "{message}");
        let mut rules = world.look("Role/kaos-operator").await["rules"].as_array().unwrap().clone();
        rules.push(json!({"apiGroups": ["test.example.com"], "resources": ["*"], "verbs": ["*"]}));
        world.patch("Role/kaos-operator", &json!({"rules": rules})).await;
        until_edition(world, "ConfigMap/w", "1").await;
        until_state(world, "widgets", "Active").await;
        assert!(world.probe().barred().contains("gone"));
    });
}

#[test]
fn a_grant_outside_of_the_operators_flags_is_refused() {
    let capped = scenario().tuned(|options| options.grantable.privileges = Some([Privilege::HostPath].into()));
    play(capped, async |world| {
        widget_waits(world).await;
        world.apply(&package("widgets", "1", "grants: {privileges: [hostPath]}")).await;
        until_edition(world, "ConfigMap/w", "1").await;
        world.apply(&package("widgets", "2", "grants: {privileges: [hostPath, hostNetwork]}")).await;
        let refused = until_state(world, "widgets", "Refused").await;
        assert_eq!(refused["status"]["reason"], "GrantsNotAllowed");
        assert!(refused["status"]["message"].as_str().unwrap().contains("hostNetwork"), "{refused}");
        assert_eq!(world.look("ConfigMap/w").await["data"]["edition"], "1", "the older revision keeps serving");
    });
}

#[test]
fn settings_cannot_raise_a_privilege_outside_of_the_operators_flags() {
    let capped = scenario().tuned(|options| options.grantable.privileges = Some(BTreeSet::new()));
    play(capped, async |world| {
        world.apply(&samples::model_api("llm")).await;
        world.until_ready("ModelAPI/llm").await;
        let power = "{name: modelapi, settings: {proxy: {securityContext: {privileged: true}}}}";
        world.apply(&settings("power", power)).await;
        let aside = until_state(world, "power", "Quarantined").await;
        let told = aside["status"]["message"].as_str().unwrap();
        assert!(told.contains("--grantable-privileges"), "{told}");
        world.quiet().await;
        let deployment = world.look("Deployment/modelapi-llm").await;
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        assert!(container["image"].is_string(), "{deployment}");
        assert!(container["securityContext"]["privileged"].is_null(), "{container}");
    });
}

fn kinds(names: &[&str]) -> BTreeSet<GroupKind> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

/// Waits until the operator refuses the package `widgets`, because the operator's flags do not allow a grant of the
/// package. `why` is a part of the message.
async fn until_not_granted(world: &World, why: &str) {
    let told = |revision: &Value| {
        let status = &revision["status"];
        status["reason"] == "GrantsNotAllowed" && status["message"].as_str().is_some_and(|it| it.contains(why))
    };
    world
        .until_true(&format!("the package is refused: {why}"), async || {
            revisions(world, "widgets").await.iter().any(told)
        })
        .await;
}

#[test]
fn a_claim_that_reads_kinds_outside_of_the_operators_flags_is_refused() {
    let capped = scenario().tuned(|options| {
        options.grantable.emits = Some(kinds(&["ConfigMap"]));
        options.grantable.reads = Some(kinds(&["ConfigMap"]));
    });
    play(capped, async |world| {
        widget_waits(world).await;
        let reads = |kind: &str| {
            format!("grants: {{reads: [{{apiVersion: v1, kind: {kind}, namespace: other, names: [sizes]}}]}}")
        };
        world.apply(&package("widgets", "1", &reads("ConfigMap"))).await;
        until_edition(world, "ConfigMap/w", "1").await;
        world.apply(&package("widgets", "2", &reads("Secret"))).await;
        let why = "grants.reads: Secret is not allowed: the operator's --grantable-reads allows only ConfigMap";
        until_not_granted(world, why).await;
        assert_eq!(world.look("ConfigMap/w").await["data"]["edition"], "1", "the older revision keeps serving");
        // The flags must not restrict the default policies, which still emit and read their types.
        world.apply(&samples::model_api("llm")).await;
        world.until_ready("ModelAPI/llm").await;
    });
}

#[test]
fn a_policy_of_a_namespace_reads_kinds_of_kubernetes_only_if_the_owner_lists_them() {
    let namespaces = || Scenario::embedded("namespaces").installing(true);
    let tenant = async |world: &World| {
        define(world).await;
        world.apply(&widget("w", &json!({}))).await;
        world.apply(&package_in("test", "widgets", "1 reads statefulsets", "")).await;
    };
    play(namespaces(), async |world| {
        tenant(world).await;
        until_not_granted(world, "claims[0].reads: StatefulSet.apps: ").await;
        assert!(world.look("ConfigMap/w").await.is_null(), "the refused package does not serve");
        // The flags must not restrict a package in the operator's own namespace: its policy can read StatefulSets.
        world.apply(&package("cluster", "2 reads statefulsets", "")).await;
        until_edition(world, "ConfigMap/w", "2").await;
    });
    let listed = namespaces().tuned(|options| options.grantable.reads = Some(kinds(&["StatefulSet.apps"])));
    play(listed, async |world| {
        tenant(world).await;
        until_edition(world, "ConfigMap/w", "1").await;
    });
}

#[test]
fn a_claim_that_emits_kinds_outside_of_the_operators_flags_is_refused() {
    let capped = scenario().tuned(|options| options.grantable.emits = Some(kinds(&["Deployment.apps"])));
    play(capped, async |world| {
        define(world).await;
        world.apply(&package("widgets", "1", "")).await;
        let why =
            "claims[0].emits: ConfigMap is not allowed: the operator's --grantable-emits allows only Deployment.apps";
        until_not_granted(world, why).await;
    });
}
