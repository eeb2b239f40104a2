//! Runs `kaos-operator upgrade-check` as a user does before an upgrade.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;

use crate::{
    stage::Stage,
    support::{Folder, Ran, run},
    today::sample,
};
use serde_json::{Value, json};

pub(crate) fn check(arguments: &[&str]) -> Ran {
    run(["upgrade-check"].iter().chain(arguments).copied(), "")
}

/// Returns the findings with this value of `sort`, each with its subject and its message.
pub(crate) fn of(ran: &Ran, sort: &str) -> Vec<(String, String)> {
    let told = ran.json();
    let is_it = |finding: &&Value| finding["sort"] == sort;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found = told["findings"].as_array().unwrap().iter().filter(is_it);
    found.map(|finding| (text(&finding["about"]), text(&finding["message"]))).collect()
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
fn a_proxy_that_runs_without_a_master_key_keeps_its_pods() {
    let folder = Folder::new("upgrade-proxy");
    let text = fs::read_to_string(sample("20-model.yaml")).unwrap();
    let created = |time: &str| {
        let named = text.replace("name: llm,", &format!("name: llm, creationTimestamp: '{time}',"));
        folder.write("model.yaml", named)
    };
    let model = created("2026-10-01T00:00:00Z");
    let rendered = run(["render", "--compatibility", "kaos-0.8", "-o", "json", "-f", &model], "").json();
    let manifests = rendered[0]["manifests"].as_array().unwrap();
    let deployment = manifests.iter().find(|it| it["kind"] == "Deployment").unwrap().to_string();
    assert!(!deployment.contains("MASTER_KEY"), "{deployment}");
    let deployment = folder.write("deployment.json", deployment);
    let with = |model: &str, values: &str| {
        let values = folder.write("values.yaml", values);
        of(&check(&["-f", model, "-f", &deployment, "--values", &values, "-o", "json"]), "rolls")
    };
    assert_eq!(with(&model, "{}"), []);
    let all = "{policies: {all: {policy: modelapi, settings: {proxyConfig: {withoutMasterKeySince: ''}}}}}";
    assert_eq!(with(&model, all).len(), 1);
    // A ModelAPI that was created later also keeps its pods: the chart records a takeover time after the ModelAPI's
    // creation.
    let model = created("2027-01-01T00:00:00Z");
    assert_eq!((with(&model, "{}"), with(&model, all).len()), (Vec::new(), 1));
}

#[test]
fn fields_that_kaos_ignored_and_users_with_an_email_are_told() {
    let folder = Folder::new("upgrade-ignored");
    let told = |object: serde_json::Value, preset: &str| {
        let file = folder.write("object.json", object.to_string());
        let found = of(&check(&["-f", &file, "--compatibility", preset, "-o", "json"]), "note");
        found.into_iter().map(|(_, message)| message).collect::<Vec<_>>().join("; ")
    };
    let object = |kind: &str, spec: serde_json::Value| {
        serde_json::json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind,
            "metadata": {"name": "a", "namespace": "today"}, "spec": spec})
    };
    let container = serde_json::json!({"image": "mine:1", "args": ["x"]});
    let agent = object("Agent", serde_json::json!({"modelAPI": "llm", "model": "m", "container": container}));
    let fields = "uses spec.container.image, spec.container.args, which KAOS ignored";
    assert!(told(agent.clone(), "kaos-0.1").contains(fields));
    assert!(!told(agent, "kaos-0.8").contains("KAOS ignored"));
    let subjects = serde_json::json!([{"kind": "User", "name": "ada@example.com"}, {"kind": "User", "name": "bob"}]);
    let resources = serde_json::json!([{"kind": "Agent", "name": "a"}]);
    let grant = object("AccessGrant", serde_json::json!({"subjects": subjects, "resources": resources}));
    assert!(told(grant, "kaos-0.8").contains("by their email (ada@example.com): the decision point counts"));
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
    let missing = "ConfigMap kaos-system/kaos-operator-config: is missing, so the check cannot compare the protection";
    assert!(ran.stdout.contains(missing), "{}", ran.stdout);
    let ran = check(&["-f", &sample("20-model.yaml"), "-f", &sample("19-operator-config.yaml")]);
    assert!(!ran.stdout.contains("is missing"), "{}", ran.stdout);
    let elsewhere = ["-f", &sample("19-operator-config.yaml"), "--operator-namespace", "elsewhere"];
    assert!(check(&elsewhere).stdout.contains("ConfigMap elsewhere/kaos-operator-config: is missing"));
    for wrong in
        [&["-f", "nowhere.yaml"][..], &["--values", "nowhere.yaml"], &["--compatibility", "kaos-0.9"], &["--bad"]]
    {
        assert_eq!(check(wrong).code, 1, "{wrong:?}");
    }
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
    let open = of(&ran, "open");
    assert!(open.iter().any(|(about, _)| about == "ConfigMap kaos-system/kaos-operator-config"), "{open:?}");
    assert_eq!(of(&ran, "refused").len(), 1, "the ModelAPI is missing");
    assert_eq!(stage.cluster.revision(), before);
}
