//! Runs `kaos-operator policy plan` and `explain` against an embedded cluster, as a user does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::stage::{HOME, Stage, edition, package, team};
use kaos_operator::package::{Package, PolicyCode, pack};
use kaos_policy::manifest::PolicyFile;
use serde_json::{Value, json};

/// Returns a copy of the team's Agent `a`, with other metadata.
fn like_a(stage: &Stage, metadata: Value) -> Value {
    let mut agent = stage.cluster.object("kaos.tools", "agents", "team", "a").unwrap().as_ref().clone();
    agent["metadata"] = metadata;
    agent
}

/// Adds an Agent that pins a policy.
fn naming(stage: &Stage, name: &str, policy: &str) {
    let metadata = json!({
        "name": name, "namespace": "team", "generation": 1, "annotations": {"kaos.tools/policy": policy},
    });
    stage.cluster.plant("kaos.tools", "agents", like_a(stage, metadata));
}

/// Adds an Agent with more containers than the second version of the policy allows.
fn beside(stage: &Stage) {
    let mut beside = like_a(stage, json!({"name": "beside", "namespace": "team"}));
    let sides = (0..6).map(|side| json!({"name": format!("side{side}"), "image": "side:1"}));
    beside["spec"]["podSpec"] = json!({"containers": sides.collect::<Vec<_>>()});
    stage.cluster.plant("kaos.tools", "agents", beside);
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_without_files_reads_objects_and_active_policies_from_the_cluster() {
    let stage = Stage::start("plan-live").await;
    team(&stage);
    let settings = stage.settings("x:1");
    let plan = ["plan", "--settings", settings.as_str(), "--for", "agent", "-o", "json"];
    let ran = stage.policy(&plan).await;
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
    assert_eq!((&ran.json()["objects"], &ran.json()["changed"]), (&3.into(), &3.into()), "{}", ran.stdout);
    assert!(ran.stdout.contains("x:1") && !ran.stdout.contains("topsecret"), "{}", ran.stdout);
    assert_eq!(stage.policy(&[&plan[..], &["-n", "elsewhere"]].concat()).await.code, 0);
    let ran = stage.policy(&["plan", "--settings", &settings, "--for", "agnet"]).await;
    let told = "there is no policy agnet: did you mean agent?";
    assert!(
        ran.code == 1 && ran.stderr.contains(told) && !ran.stderr.contains("is not a default policy"),
        "{}",
        ran.stderr
    );
    // When these settings are active already, the plan shows no changes.
    stage.revision("agent-1", &package("x:1"), 1, &json!({"state": "Active", "policy": "agent"}));
    let ran = stage.policy(&plan).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_changes_nothing_for_objects_pinned_to_earlier_or_unknown_policies() {
    let stage = Stage::start("plan-pins").await;
    team(&stage);
    let name = |number: u8| format!("agents-{number}");
    for number in 0..3_u8 {
        let state = if number == 2 { "Active" } else { "Superseded" };
        let before = number.checked_sub(1).map(name);
        let status = json!({"state": state, "policy": "agent", "predecessor": before});
        stage.revision(&name(number), &edition(number, "{}"), number.into(), &status);
    }
    let digest = |number: u8| edition(number, "{}").component_digest().unwrap().to_string();
    // An operator keeps a limited number of predecessors, so with the planned revision it would drop the oldest one.
    for (name, policy) in [("served", digest(2)), ("forgotten", digest(0)), ("vain", "nobody".to_owned())] {
        naming(&stage, name, &policy);
    }
    let mut next = edition(3, "{}");
    next.file.settings = json!({"image": "x:9"});
    let packed = pack(&next.name, HOME, &next.file, next.component.as_ref()).unwrap().index;
    let packed = stage.folder.write("packed.json", serde_json::to_string(&packed).unwrap());
    let ran = stage.policy(&["plan", &packed, "-o", "json"]).await;
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
    let told = ran.json();
    assert_eq!((&told["objects"], &told["changed"]), (&3.into(), &3.into()), "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stderr.contains("Agent team/forgotten: names a policy that would no longer exist")
            && !ran.stderr.contains("team/served")
            && !ran.stderr.contains("team/vain"),
        "{}",
        ran.stderr
    );
}

/// Returns settings for Agents that make the answers of a policy large.
fn long_annotations() -> String {
    format!("extraAnnotations: {{note: {}}}\n", "x".repeat(150_000))
}

/// Adds a policy for Agents in namespace `canary`. Its limit for the size of answers is too low for
/// [`long_annotations`].
fn terse_canary_serves(stage: &Stage) {
    let mut canary = edition(1, "{answerBytes: 200000}");
    canary.file.scope.namespaces = vec!["canary".to_owned()];
    stage.revision("agents-1", &canary, 1, &json!({"state": "Active", "policy": "agent"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_tries_settings_on_the_policies_that_answer_in_their_scope() {
    let stage = Stage::start("plan-scopes").await;
    team(&stage);
    terse_canary_serves(&stage);
    let settings = stage.folder.write("long.yaml", long_annotations());
    for (scope, code) in [(&["--scope", "team"][..], 2), (&["--scope", "canary"], 1), (&[], 1)] {
        let ran = stage.policy(&[&["plan", "--settings", &settings, "--for", "agent"][..], scope].concat()).await;
        assert_eq!(ran.code, code, "{scope:?}: {}", ran.stderr);
        let told = ran.stderr.contains("sample minimal of Agent: ") && ran.stderr.contains("answer");
        assert_eq!(told, code == 1, "{scope:?}: {}", ran.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_refuses_a_version_that_active_settings_break() {
    let stage = Stage::start("plan-unfit").await;
    team(&stage);
    stage.revision("agents-1", &edition(1, "{}"), 1, &json!({"state": "Active", "policy": "agent"}));
    let mut long = package("x:1");
    long.file.settings = json!({"extraAnnotations": {"note": "x".repeat(150_000)}});
    long.file.scope.namespaces = vec!["canary".to_owned()];
    stage.revision("long-1", &long, 2, &json!({"state": "Active", "policy": "agent"}));
    let terse = edition(2, "{answerBytes: 200000}");
    let component = stage.folder.write("agents.wasm", terse.component.unwrap().bytes);
    stage.folder.write("policy.yaml", serde_json::to_string(&terse.file).unwrap());
    let plan = ["plan", component.as_str(), "--name", "agents"];
    let ran = stage.policy(&plan).await;
    let told =
        "with the settings of policy ConfigMap policy-agent-settings of the operator's namespace: sample minimal";
    assert!(ran.code == 1 && ran.stderr.contains(told), "{}{}", ran.stdout, ran.stderr);
    // The settings do not apply to a policy with the scope `team`, so the command does not check the samples with them.
    let ran = stage.policy(&[&plan[..], &["--scope", "team"]].concat()).await;
    assert!(ran.code != 1 && !ran.stderr.contains("sample"), "{}{}", ran.stdout, ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_fails_on_conflicts_of_the_new_package_not_of_others() {
    let stage = Stage::start("plan-conflict").await;
    team(&stage);
    let active = json!({"state": "Active", "policy": "agent"});
    for (age, name) in [(1, "one"), (2, "two")] {
        let theirs = Package { name: name.into(), namespace: "team".into(), ..package("x:7") };
        stage.revision(&format!("team.{name}-1"), &theirs, age, &active);
    }
    let settings = stage.folder.write("policy-of-pulls.yaml", "imagePullPolicy: Never\n");
    let ran = stage.policy(&["plan", "--settings", &settings, "--for", "agent", "-o", "json"]).await;
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.json()["changed"], 3, "{}", ran.stdout);
    let note = "note: PolicyRevision team.two-1 does not serve: team.one-1 already sets `image`";
    assert_eq!(ran.stderr.matches(note).count(), 1, "{}", ran.stderr);
    stage.revision("agent-1", &package("x:1"), 3, &active);
    let settings = stage.settings("x:2");
    let ran = stage.policy(&["plan", "--settings", &settings, "--for", "agent", "--name", "other"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("the planned package would not serve: agent-1 already sets `image`"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_that_frees_a_place_shows_the_waiting_package_serving() {
    let stage = Stage::start("plan-freed").await;
    team(&stage);
    for (age, name, state) in [(1, "one", "Active"), (2, "two", "Conflict")] {
        let theirs = Package { name: name.into(), namespace: "team".into(), ..package(&format!("x:{age}")) };
        stage.revision(&format!("team.{name}-1"), &theirs, age, &json!({"state": state, "policy": "agent"}));
    }
    let settings = stage.folder.write("policy-of-pulls.yaml", "imagePullPolicy: Never\n");
    let plan = ["plan", "--settings", settings.as_str(), "--for", "agent", "--into", "team", "-o", "json"];
    let note = "note: PolicyRevision team.two-1 would serve after the change";
    let ran = stage.policy(&[&plan[..], &["--name", "one"]].concat()).await;
    assert_eq!((ran.code, &ran.json()["changed"]), (2, &3.into()), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("x:2") && ran.stderr.contains(note), "{}{}", ran.stdout, ran.stderr);
    // A planned package with another name does not replace `one`. So `one` still claims the place for which `two`
    // waits.
    let ran = stage.policy(&[&plan[..], &["--name", "other"]].concat()).await;
    assert_eq!((ran.code, &ran.json()["changed"]), (2, &3.into()), "{}{}", ran.stdout, ran.stderr);
    assert!(!ran.stdout.contains("x:2") && !ran.stderr.contains(note), "{}{}", ran.stdout, ran.stderr);
    let ran = stage.policy(&["explain", "agent/a", "-n", "team"]).await;
    let note = "note: PolicyRevision team.two-1 does not serve: team.one-1 already sets `image`";
    assert!(ran.code == 0 && ran.stderr.contains(note), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_leaves_out_a_revision_with_lost_bytes_and_warns_with_a_remedy() {
    let stage = Stage::start("plan-lost").await;
    team(&stage);
    let settings = stage.settings("x:1");
    let plan = ["plan", "--settings", settings.as_str(), "--for", "agent"];
    stage.record("agent-1", &package("x:1"), 1, &json!({"state": "Active", "policy": "agent"}));
    for (kept, why) in [
        (None, "the operator no longer stores the bytes of this revision"),
        (Some("{name: agent, settings: {image: evil}}"), "the stored bytes of this revision were changed"),
        (Some("{nonsense: 1}"), "the stored bytes of this revision are damaged"),
    ] {
        if let Some(file) = kept {
            let metadata = json!({"name": "agent-1", "namespace": HOME});
            let kept =
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"policy.yaml": file}});
            stage.cluster.plant("", "configmaps", kept);
        }
        let ran = stage.policy(&plan).await;
        assert_eq!(ran.code, 2, "{why}: {}{}", ran.stdout, ran.stderr);
        for told in [
            "warning: PolicyRevision agent-1 is left out",
            why,
            "apply ConfigMap kaos-system/policy-agent-settings again",
        ] {
            assert!(ran.stderr.contains(told), "{told}: {}", ran.stderr);
        }
    }
    let ran = stage.policy(&["explain", "agent/a", "-n", "team"]).await;
    assert!(ran.code == 0 && ran.stderr.contains("agent-1 is left out"), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("the operator has this policy at its start, and no package replaces it"),
        "{}",
        ran.stdout
    );
    // With the package's ConfigMap, an operator that starts would find the package again.
    let source = pack("policy-agent-settings", HOME, &package("x:1").file, None).unwrap().index;
    stage.cluster.plant("", "configmaps", serde_json::to_value(source).unwrap());
    let ran = stage.policy(&plan).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(!ran.stderr.contains("left out"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_prints_policy_reasons_inputs_and_settings_of_an_object() {
    let stage = Stage::start("explain").await;
    team(&stage);
    let ran = stage.policy(&["explain", "agent/a", "-n", "team"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for told in [
        "Agent team/a",
        "the operator has this policy at its start, and no package replaces it",
        "ModelAPI team/llm",
        "found",
        "status.endpoint",
        "MODEL_API_URL",
    ] {
        assert!(ran.stdout.contains(told), "{told}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("topsecret"), "{}", ran.stdout);
    stage.revision("agent-1", &package("x:1"), 1, &json!({"state": "Active", "policy": "agent"}));
    let told = stage.policy(&["explain", "Agents/b", "-n", "team", "-o", "json"]).await.json();
    assert!(
        told["because"]
            .to_string()
            .contains("PolicyRevision agent-1, from ConfigMap kaos-system/policy-agent-settings")
    );
    let setting = json!({
        "policy": "agent", "path": "image", "value": "\"x:1\"",
        "from": "policy ConfigMap policy-agent-settings of the operator's namespace",
    });
    assert_eq!((&told["settings"][0], &told["policy"]["name"]), (&setting, &"agent".into()), "{told}");
    let ran = stage.policy(&["explain", "agent/b", "-n", "team"]).await;
    let line = ran.stdout.lines().find(|line| line.contains("of the operator's namespace")).unwrap_or_default();
    assert_eq!(line.split_whitespace().take(3).collect::<Vec<_>>(), ["agent", "image", "\"x:1\""], "{}", ran.stdout);
    for (object, told) in [("agent/nobody", "does not exist"), ("kite/a", "only for"), ("agent", "KIND/NAME")] {
        let ran = stage.policy(&["explain", object, "-n", "team"]).await;
        assert!(ran.code == 2 && ran.stderr.contains(told), "{object}: {}", ran.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_names_the_policy_and_the_layer_of_each_setting() {
    let stage = Stage::start("explain-layers").await;
    team(&stage);
    stage.revision("agent-1", &package("x:1"), 1, &json!({"state": "Active", "policy": "agent"}));
    let own = Package { name: "own".into(), namespace: "team".into(), ..package("x:2") };
    stage.revision("team.own-1", &own, 2, &json!({"state": "Active", "policy": "agent"}));
    let overlay = Package {
        name: "levels".into(),
        file: PolicyFile::parse("settings: {level: DEBUG}").unwrap(),
        component: Some(PolicyCode::component(std::fs::read(crate::overlay::component(&stage.folder)).unwrap())),
        ..package("")
    };
    stage.revision("levels-1", &overlay, 3, &json!({"state": "Active", "policy": "log-level"}));
    let ran = stage.policy(&["explain", "agent/a", "-n", "team", "-o", "json"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let setting = |policy: &str, path: &str, value: &str, from: &str| json!({"policy": policy, "path": path, "value": value, "from": from});
    // The namespace's setting overrides the cluster's setting, and each policy has its own settings.
    let wanted = json!([
        setting("agent", "image", "\"x:2\"", "policy ConfigMap team/own (namespace)"),
        setting("log-level", "level", "\"DEBUG\"", "policy ConfigMap levels of the operator's namespace"),
    ]);
    assert_eq!(ran.json()["settings"], wanted, "{}{}", ran.stdout, ran.stderr);
    let ran = stage.policy(&["explain", "agent/a", "-n", "team"]).await;
    let line = |of: [&str; 2]| {
        let is_it = |line: &&str| line.split_whitespace().take(2).eq(of);
        ran.stdout.lines().find(is_it).unwrap_or_default()
    };
    assert!(line(["agent", "image"]).ends_with("policy ConfigMap team/own (namespace)"), "{}", ran.stdout);
    assert!(line(["log-level", "level"]).contains("\"DEBUG\""), "{}", ran.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn last_valid_operator_config_holds_while_the_current_one_is_invalid() {
    let stage = Stage::start("unfit").await;
    team(&stage);
    let holds = |name: &str, image: &str, telemetry: &str| {
        let data = json!({"DEFAULT_AGENT_IMAGE": image, "DEFAULT_TELEMETRY_ENABLED": telemetry});
        let metadata = json!({"name": name, "namespace": HOME});
        let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
        stage.cluster.plant("", "configmaps", config_map);
    };
    let explain = ["explain", "agent/a", "-n", "team"];
    holds("kaos-operator-config", "x:2", "maybe");
    let ran = stage.policy(&explain).await;
    assert!(ran.code == 2 && ran.stderr.contains("DEFAULT_TELEMETRY_ENABLED"), "{}{}", ran.stdout, ran.stderr);
    holds("kaos-operator-config-fitted", "x:1", "false");
    let ran = stage.policy(&explain).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("x:1") && !ran.stdout.contains("x:2"), "{}", ran.stdout);
    let note = "note: ConfigMap kaos-system/kaos-operator-config does not fit";
    assert!(ran.stderr.contains(note) && ran.stderr.contains("DEFAULT_TELEMETRY_ENABLED"), "{}", ran.stderr);
    let settings = stage.settings("x:3");
    let ran = stage.policy(&["plan", "--settings", &settings, "--for", "agent", "-o", "json"]).await;
    assert!(ran.code == 2 && ran.stderr.contains(note), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("x:1") && ran.stdout.contains("x:3"), "{}", ran.stdout);
}

/// Starts a cluster on which a second version of the policy serves. It fails on the Agent `beside`; the first version
/// does not.
async fn second_edition_serves(name: &str) -> Stage {
    let stage = Stage::start(name).await;
    team(&stage);
    beside(&stage);
    stage.revision("agents-1", &edition(1, "{}"), 1, &json!({"state": "Superseded", "policy": "agent"}));
    let active =
        json!({"state": "Active", "policy": "agent", "predecessor": "agents-1", "since": "2026-01-01T00:00:02Z"});
    stage.revision("agents-2", &edition(2, "{containers: 6}"), 2, &active);
    stage
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_shows_the_predecessor_for_an_object_that_fails_the_policy() {
    let stage = second_edition_serves("fallback").await;
    let told = stage.policy(&["explain", "agent/a", "-n", "team"]).await;
    assert!(
        told.stdout.contains("PolicyRevision agents-2, from") && !told.stdout.contains("agents-1"),
        "{}{}",
        told.stdout,
        told.stderr
    );
    let told = stage.policy(&["explain", "agent/beside", "-n", "team"]).await;
    for line in ["PolicyRevision agents-2 serves, but does not answer for this object", "PolicyRevision agents-1, from"]
    {
        assert!(told.stdout.contains(line), "{line}: {}{}", told.stdout, told.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_keeps_settings_that_did_not_cause_the_policy_failure() {
    let stage = second_edition_serves("blame").await;
    let newer = json!({"state": "Active", "policy": "agent", "since": "2026-01-01T00:00:03Z"});
    stage.revision("settings-1", &package("x:1"), 3, &newer);
    let told = stage.policy(&["explain", "agent/beside", "-n", "team"]).await;
    for line in [
        "PolicyRevision agents-2 serves, but does not answer for this object",
        "PolicyRevision agents-1, from",
        "settings: PolicyRevision settings-1, from",
    ] {
        assert!(told.stdout.contains(line), "{line}: {}{}", told.stdout, told.stderr);
    }
    assert!(!told.stdout.contains("settings-1 serves, but"), "{}", told.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_says_that_children_stay_if_the_pin_names_no_policy() {
    let stage = Stage::start("vain").await;
    team(&stage);
    naming(&stage, "vain", "nobody");
    let ran = stage.policy(&["explain", "agent/vain", "-n", "team"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for told in ["the object names nobody in its annotation", "leaves the children unchanged", "name one of agent"] {
        assert!(ran.stdout.contains(told), "{told}: {}", ran.stdout);
    }
    let ran = stage.policy(&["explain", "agent/a", "-n", "team"]).await;
    assert!(!ran.stdout.contains("leaves the children unchanged"), "{}", ran.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_leaves_out_settings_that_exceed_grantable_privileges() {
    let stage = Stage::start("capped").await;
    team(&stage);
    let mut power = package("x:1");
    power.file.settings = json!({"securityContext": {"privileged": true}});
    stage.revision("agent-1", &power, 1, &json!({"state": "Active", "policy": "agent"}));
    let explain = ["explain", "agent/a", "-n", "team"];
    let gone = "PolicyRevision agent-1 serves, but does not answer for this object";
    let ran = stage.policy(&explain).await;
    assert!(ran.code == 0 && !ran.stdout.contains(gone), "{}{}", ran.stdout, ran.stderr);
    let ran = stage.policy(&[&explain[..], &["--grantable-privileges", "none"]].concat()).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for told in [gone, "--grantable-privileges does not allow"] {
        assert!(ran.stdout.contains(told), "{told}: {}", ran.stdout);
    }
}
