//! Runs `kaos-operator upgrade-check` as a user does before an upgrade.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::{
    stage::Stage,
    support::{Folder, Ran, run},
    today::sample,
};
use serde_json::{Value, json};

fn check(arguments: &[&str]) -> Ran {
    run(["upgrade-check"].iter().chain(arguments).copied(), "")
}

/// Returns the findings of the sort `sort`, each with its subject and its message.
fn of(ran: &Ran, sort: &str) -> Vec<(String, String)> {
    let told = ran.json();
    let is_it = |finding: &&Value| finding["sort"] == sort;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found = told["findings"].as_array().unwrap().iter().filter(is_it);
    found.map(|finding| (text(&finding["about"]), text(&finding["message"]))).collect()
}

#[test]
fn a_secured_cluster_whose_values_are_dropped_breaks_in_three_ways_and_the_check_names_them() {
    let (cluster, config) = (sample("20-as-found.yaml"), sample("19-operator-config.yaml"));
    let ran = check(&["-f", &cluster, "-f", &config, "-o", "json"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let breaks = of(&ran, "breaks");
    let named = |about: &str, message: &str| breaks.iter().any(|(a, m)| a.contains(about) && m.contains(message));
    assert!(named("SECURITY_PDP_ENABLED", "every request through the gateway is denied"), "{breaks:?}");
    assert!(named("NetworkPolicies", "they block direct calls"), "{breaks:?}");
    assert!(named("created later", "every client can call them"), "{breaks:?}");
    assert!(named("security.strictGatewayApi.enabled", "without the gateway"), "{breaks:?}");
}

#[test]
fn the_values_of_a_secured_cluster_need_its_issuer_and_keep_it_protected() {
    let (cluster, values) = (sample("20-as-found.yaml"), sample("values/secured.yaml"));
    let ran = check(&["-f", &cluster, "--values", &values, "-o", "json"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let breaks = of(&ran, "breaks");
    let named = |about: &str, message: &str| breaks.iter().any(|(a, m)| a.contains(about) && m.contains(message));
    assert!(!named("", "every request through the gateway is denied"), "{breaks:?}");
    assert!(named("security.userAuth.jwks", "could check no token of a user"), "{breaks:?}");
    for field in ["issuer", "jwks"] {
        assert!(named(&format!("serviceAccount.{field}"), "the chart stops"), "{breaks:?}");
    }
    assert!(!named("NetworkPolicies", "") && !named("created later", ""), "{breaks:?}");
    assert!(!named("security.strictGatewayApi", ""), "{breaks:?}");
    assert!(of(&ran, "open").iter().any(|(about, _)| about == "security.gatewayHost"), "{}", ran.stdout);
    assert!(
        of(&ran, "lost").iter().any(|(about, message)| about == "Agent today/plain"
            && message.contains(
                "kaos.tools/oidc-client-finalizer: when a user deletes the object, this operator removes the finalizer"
            )),
        "{}",
        ran.stdout
    );
    let text = check(&["-f", &cluster, "--values", &values]).stdout;
    assert!(text.starts_with("Stops working, or stays open to all callers:\n"), "{text}");
}

#[test]
fn a_decision_point_with_complete_values_goes_on_and_the_check_names_no_break() {
    let complete = "\
security:
  userAuth: {jwks: '{\"keys\": []}'}
  gatewayHost: gw.example
  agentAuth: {identity: {serviceAccount: {issuer: 'https://cluster', jwks: '{\"keys\": []}'}}}
";
    let folder = Folder::new("upgrade-decision-point");
    let more = folder.write("complete.yaml", complete);
    let files = ["19-operator-config.yaml", "20-model.yaml", "values/secured.yaml"].map(sample);
    let check = |further: &str| {
        let further = folder.write("further.yaml", further);
        let values = ["--values", &files[2], "--values", &more, "--values", &further, "-o", "json"];
        check(&[&["-f", &files[0], "-f", &files[1]], &values[..]].concat())
    };
    let ran = check("{}");
    assert_eq!(of(&ran, "breaks"), [], "{}", ran.stdout);
    for (further, about, message) in [
        ("{security: {agentAuth: {projection: {prune: false}}}}", "projection.prune", "lose their entries"),
        (
            "{security: {agentAuth: {projection: {policyConfigMap: {namespace: x}}}}}",
            "policyConfigMap.namespace",
            "chart stops",
        ),
        ("{watchNamespaces: [team]}", "watchNamespaces", "lacks kaos-system"),
        ("{security: {pdp: {enabled: false}}}", "security.pdp.enabled", "every request through the gateway is denied"),
        ("{security: {agentAuth: {identity: {provider: oidc}}}}", "identity.provider", "lose the credentials"),
    ] {
        let breaks = of(&check(further), "breaks");
        assert!(breaks.iter().any(|(a, m)| a.contains(about) && m.contains(message)), "{further}: {breaks:?}");
    }
}

#[test]
fn a_limit_of_the_earlier_release_that_the_values_lack_is_named() {
    let folder = Folder::new("upgrade-limits");
    let config = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "kaos-operator-config", "namespace": "kaos-system"},
        "data": {
            "SECURITY_PDP_ENABLED": "true", "SECURITY_USER_AUTH_AUDIENCE": "kaos",
            "SECURITY_NETWORK_POLICY_EGRESS_ENABLED": "true",
        },
    });
    let config = folder.write("config.yaml", config.to_string());
    let check = |values: &str| {
        let values = folder.write("values.yaml", values);
        of(&check(&["-f", &config, "--values", &values, "-o", "json"]), "breaks")
    };
    let rows = [
        ("security.userAuth.audience", "other applications"),
        ("security.networkPolicy.egress.enabled", "no longer limit the connections"),
    ];
    let dropped = check("{security: {pdp: {enabled: true}}}");
    let kept = check(
        "{security: {pdp: {enabled: true}, userAuth: {audience: kaos}, networkPolicy: {egress: {enabled: true}}}}",
    );
    for (about, message) in rows {
        let is_named =
            |breaks: &[(String, String)]| breaks.iter().any(|(a, m)| a.contains(about) && m.contains(message));
        assert!(is_named(&dropped) && !is_named(&kept), "{about}: {dropped:?} {kept:?}");
    }
}

#[test]
fn the_operators_configuration_tells_that_a_cluster_is_secured_where_the_values_do_not() {
    let ran = check(&["-f", &sample("19-operator-config.yaml"), "-o", "json"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let breaks = of(&ran, "breaks");
    assert!(
        breaks
            .iter()
            .any(|(about, _)| about
                .contains("SECURITY_PDP_ENABLED is set in ConfigMap kaos-system/kaos-operator-config")),
        "{breaks:?}"
    );
}

#[test]
fn pods_of_kaos_0_8_are_not_replaced_under_its_preset_and_all_are_under_that_of_january() {
    let files = [sample("20-as-found.yaml"), sample("20-model.yaml")];
    let at = ["-f", files[0].as_str(), "-f", files[1].as_str(), "-o", "json"];
    let ran = check(&at);
    assert_eq!(of(&ran, "rolls"), [], "{}", ran.stdout);
    let january = check(&[&at[..], &["--compatibility", "kaos-0.1"]].concat());
    let rolls = of(&january, "rolls");
    assert_eq!((january.code, rolls.len()), (2, 1), "{}", january.stdout);
    let told = january.json();
    let finding = told["findings"].as_array().unwrap().iter().find(|finding| finding["sort"] == "rolls").unwrap();
    let paths: Vec<&str> =
        finding["fields"].as_array().unwrap().iter().map(|it| it["path"].as_str().unwrap()).collect();
    for path in ["image", "serviceAccountName", "AGENT_AUTH_TOKEN_FILE", "livenessProbe", "volumes"] {
        assert!(paths.iter().any(|field| field.contains(path)), "{path} in {paths:?}");
    }
}

#[test]
fn values_decide_what_rolls() {
    let folder = Folder::new("upgrade-values");
    let files = [sample("20-as-found.yaml"), sample("20-model.yaml")];
    let with = |values: &str| {
        let values = folder.write("values.yaml", values);
        check(&[
            "-f",
            &files[0],
            "-f",
            &files[1],
            "--values",
            &sample("values/kaos-0.8.2.yaml"),
            "--values",
            &values,
            "-o",
            "json",
        ])
    };
    let rolls = of(&with("defaultImages: {agentRuntime: 'axsauze/kaos-agent:0.8.4'}\n"), "rolls");
    assert_eq!(rolls, []);
    let ran = with("{}\n");
    assert_eq!(of(&ran, "rolls").len(), 1, "the image in these values is 0.8.2: {}", ran.stdout);
    let ran = with("policies: {mine: {policy: agent, settings: {image: 'axsauze/kaos-agent:0.8.4'}}}\n");
    assert_eq!(of(&ran, "rolls"), [], "{}", ran.stdout);
}

#[test]
fn objects_that_nobody_answers_for_are_listed_and_stores_are_told() {
    let ran = check(&["-f", &sample("12-accessgrant.yaml"), "-f", &sample("08-memorystore-local.yaml"), "-o", "json"]);
    assert_eq!((ran.code, of(&ran, "lost").len()), (0, 0), "{}{}", ran.stdout, ran.stderr);
    let notes = of(&ran, "note");
    assert!(notes.iter().filter(|(about, _)| about.contains("AccessGrant")).count() == 3, "{}", ran.stdout);
    assert!(of(&ran, "notes").is_empty() && notes.iter().any(|(about, _)| about.contains("notes")), "{}", ran.stdout);
}

#[test]
fn a_cluster_without_findings_ends_with_zero_and_an_unreadable_question_with_one() {
    let ran = check(&["-f", &sample("20-model.yaml")]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("no pod is replaced"), "{}", ran.stdout);
    for wrong in
        [&["-f", "nowhere.yaml"][..], &["--values", "nowhere.yaml"], &["--compatibility", "kaos-0.9"], &["--bad"]]
    {
        assert_eq!(check(wrong).code, 1, "{wrong:?}");
    }
}

#[test]
fn security_objects_of_kaos_are_named_and_those_of_others_are_not() {
    let folder = Folder::new("upgrade-security");
    let object = |version: &str, kind: &str, metadata: Value| {
        let mut metadata = metadata;
        (metadata["name"], metadata["namespace"]) = (json!("agent-plain"), json!("today"));
        json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {}}).to_string()
    };
    let owner = json!([{"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "name": "plain", "uid": "u", "controller": true}]);
    let check = |metadata: Value| {
        let objects = folder.write(
            "security.yaml",
            [
                object("networking.k8s.io/v1", "NetworkPolicy", metadata.clone()),
                object("gateway.envoyproxy.io/v1alpha1", "SecurityPolicy", metadata),
            ]
            .join("\n---\n"),
        );
        check(&["-f", &objects, "-f", &sample("20-model.yaml"), "-o", "json"])
    };
    let ran = check(json!({"ownerReferences": owner}));
    let about: Vec<String> = of(&ran, "breaks").into_iter().map(|(about, _)| about).collect();
    assert_eq!((ran.code, about.len()), (2, 2), "{about:?}");
    assert!(about[0].contains("NetworkPolicy: 1 of KAOS objects") && about[1].contains("SecurityPolicy"), "{about:?}");
    assert_eq!(check(json!({})).code, 0);
    let ours = json!({"ownerReferences": owner, "annotations": {"kaos.tools/applied-digest": "d"}});
    assert_eq!(check(ours).code, 0, "a policy of this operator created the object");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_cluster_is_read_and_not_changed() {
    let stage = Stage::start("upgrade-check").await;
    let agent = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent",
        "metadata": {"name": "plain", "namespace": "team", "uid": "u1",
            "finalizers": ["kaos.tools/agent-finalizer", "kaos.tools/oidc-client-finalizer"]},
        "spec": {"modelAPI": "llm", "model": "m"}});
    stage.cluster.plant("kaos.tools", "agents", agent);
    stage.cluster.settled().await;
    let before = stage.cluster.revision();
    let ran = stage.ask(&["upgrade-check", "-o", "json"]).await;
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
    let lost = of(&ran, "lost");
    assert!(lost.iter().any(|(_, message)| message.contains("oidc-client-finalizer")), "{lost:?}");
    assert_eq!(of(&ran, "refused").len(), 1, "the ModelAPI is missing");
    assert_eq!(stage.cluster.revision(), before);
}
