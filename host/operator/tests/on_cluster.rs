//! Runs `kaos-operator policy plan` and `push` on a cluster that already has policies or objects.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use crate::stage::{HOME, Stage, package, team};
use crate::support::Ran;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kaos_operator::package::{Package, pack};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn plan_decides_conflicts_by_claim_time_not_by_config_map_age() {
    let stage = Stage::start("plan-claims").await;
    team(&stage);
    let theirs = Package { name: "theirs".into(), ..package("x:1") };
    let serves = json!({"state": "Active", "policy": "agent", "claimed": "2026-02-01T00:00:00.000001Z"});
    stage.revision("theirs-1", &theirs, 1, &serves);
    // This ConfigMap is older than the package `theirs`, but contains no package itself.
    let empty = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "policy-agent-settings", "namespace": HOME, "creationTimestamp": "2020-01-01T00:00:00Z",
            "labels": {"kaos.tools/policy": "package"},
        },
    });
    stage.cluster.plant("", "configmaps", empty);
    let settings = stage.settings("x:2");
    let plan = ["plan", "--settings", settings.as_str(), "--for", "agent"];
    let ran = stage.policy(&plan).await;
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stderr.contains("would not serve: theirs-1 already sets `image` of agent in the same namespaces"),
        "{}",
        ran.stderr
    );
    // An active package keeps its place when its content changes, even if another package waits for this place.
    let own = json!({"state": "Active", "policy": "agent", "claimed": "2026-01-01T00:00:00.000001Z"});
    stage.revision("own-1", &package("x:1"), 1, &own);
    let waits = json!({"state": "Conflict", "policy": "agent", "claimed": "2026-02-01T00:00:00.000001Z"});
    stage.revision("theirs-1", &theirs, 1, &waits);
    let ran = stage.policy(&plan).await;
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("theirs-1 does not serve") && !ran.stderr.contains("no more"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_pushed_for_one_scope_keep_settings_of_another_scope() {
    let stage = Stage::start("push-scopes").await;
    let settings = |image: &str| stage.folder.write(&format!("{image}.yaml"), format!("image: {image}\n"));
    for (scope, image) in [("blue", "x1"), ("team", "x2")] {
        let settings = settings(image);
        let push = ["push", "--settings", settings.as_str(), "--for", "agent", "--scope", scope, "--timeout", "0"];
        let ran = stage.policy(&push).await;
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    for (scope, image) in [("blue", "x1"), ("team", "x2")] {
        let stored = stage.stored(&format!("policy-agent-settings.{scope}"));
        assert_eq!(
            (&stored.file.scope.namespaces[..], &stored.file.settings["image"]),
            (&[scope.to_owned()][..], &image.into())
        );
    }
    // The package with this name applies in `blue`. The command refuses to push it with another scope, because this
    // would move the package.
    let of = settings("x2");
    let named = "policy-agent-settings.blue";
    let push = ["push", "--settings", of.as_str(), "--for", "agent", "--name", named, "--timeout", "0"];
    for (scope, to) in [(&["--scope", "team"][..], "team"), (&[], "the whole cluster")] {
        let ran = stage.policy(&[&push[..], scope].concat()).await;
        let told = format!(
            "ConfigMap kaos-system/{named} applies in blue, but would then apply in {to} instead: choose another"
        );
        assert!(ran.code == 2 && ran.stderr.contains(&told) && ran.stderr.contains("--move"), "{}", ran.stderr);
        assert_eq!(stage.stored(named).file.settings["image"], "x1");
    }
    let ran = stage.policy(&[&push[..], &["--scope", "blue"]].concat()).await;
    assert_eq!((ran.code, &stage.stored(named).file.settings["image"]), (0, &"x2".into()), "{}", ran.stderr);
    let ran = stage.policy(&[&push[..], &["--scope", "team", "--move"]].concat()).await;
    assert_eq!(
        (ran.code, &stage.stored(named).file.scope.namespaces[..]),
        (0, &["team".to_owned()][..]),
        "{}",
        ran.stderr
    );
    team(&stage);
    let blue = Package { name: "mine".into(), ..package("x:1") };
    let file = kaos_policy::manifest::PolicyFile {
        scope: kaos_policy::manifest::Scope { namespaces: vec!["blue".into()], ..Default::default() },
        ..blue.file
    };
    stage.revision("mine-1", &Package { file, ..blue }, 1, &json!({"state": "Active", "policy": "agent"}));
    let settings = settings("x2");
    let plan =
        ["plan", "--settings", settings.as_str(), "--for", "agent", "--scope", "team", "--name", "mine", "-n", "team"];
    let ran = stage.policy(&plan).await;
    let told = "ConfigMap kaos-system/mine applies in blue, but would then apply in team instead";
    assert!(
        ran.code == 2 && ran.stderr.contains(told) && ran.stderr.contains("--name"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
}

/// Returns the ConfigMap of a package that sets an image, as `policy pack` prints it, with an additional label of the
/// user.
fn packed(image: &str) -> Value {
    let package = package(image);
    let mut index = pack(&package.name, HOME, &package.file, None).unwrap().index;
    index.metadata.labels.get_or_insert_default().insert("mine".into(), "too".into());
    let mut index = serde_json::to_value(index).unwrap();
    (index["apiVersion"], index["kind"]) = (json!("v1"), json!("ConfigMap"));
    index
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_apply_push_and_rollback_take_turns_without_conflicts() {
    let stage = Stage::start("one-owner").await;
    let api: Api<ConfigMap> = Api::namespaced(Client::new(stage.cluster.service(), HOME), HOME);
    // Writes the ConfigMap like `kubectl apply --server-side -f -`.
    let apply = async |image: &str| {
        let applied =
            api.patch("policy-agent-settings", &PatchParams::apply("kubectl"), &Patch::Apply(packed(image))).await;
        applied.map(drop).map_err(|error| error.to_string())
    };
    let holds = |image: &str| {
        assert_eq!(stage.stored("policy-agent-settings").digest(), package(image).digest());
        let stored = stage.cluster.object("", "configmaps", HOME, "policy-agent-settings").unwrap();
        assert_eq!(stored["metadata"]["labels"]["mine"], "too", "{image}");
    };
    let push = async |image: &str| {
        stage.policy(&["push", "--settings", &stage.settings(image), "--for", "agent", "--timeout", "0"]).await
    };
    apply("x:1").await.unwrap();
    stage.revision("agent-1", &package("x:1"), 1, &json!({"state": "Superseded", "policy": "agent"}));
    let active = json!({"state": "Active", "policy": "agent", "predecessor": "agent-1"});
    stage.revision("agent-2", &package("x:2"), 2, &active);
    apply("x:2").await.unwrap();
    let ran = stage.policy(&["rollback", "agent", "--timeout", "0"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    holds("x:1");
    apply("x:2").await.unwrap();
    holds("x:2");
    let ran = push("x:3").await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    holds("x:3");
    apply("x:4").await.unwrap();
    // Write the ConfigMap like `kubectl apply` without `--server-side`: with an update.
    let mut edited = api.get("policy-agent-settings").await.unwrap();
    edited.data = serde_json::from_value(packed("x:5")["data"].clone()).unwrap();
    let client_side = PostParams { field_manager: Some("kubectl-client-side-apply".into()), ..PostParams::default() };
    api.replace("policy-agent-settings", &client_side, &edited).await.unwrap();
    holds("x:5");
    let ran = push("x:6").await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    holds("x:6");
    // Now another controller manages the fields.
    let theirs = PatchParams::apply("argocd-controller").force();
    api.patch("policy-agent-settings", &theirs, &Patch::Apply(packed("x:7"))).await.unwrap();
    let ran = push("x:8").await;
    assert!(
        ran.code == 2 && ran.stderr.contains("argocd-controller") && ran.stderr.contains("--force-conflicts"),
        "{}",
        ran.stderr
    );
    holds("x:7");
}

#[tokio::test(flavor = "multi_thread")]
async fn push_keeps_the_field_manager_of_the_former_guide() {
    let stage = Stage::start("former-owner").await;
    let api: Api<ConfigMap> = Api::namespaced(Client::new(stage.cluster.service(), HOME), HOME);
    let former = PatchParams::apply("kaos-operator-policy");
    let apply = async |image: &str| api.patch("policy-agent-settings", &former, &Patch::Apply(packed(image))).await;
    for image in ["x:1", "x:3"] {
        apply(image).await.unwrap();
        let ran =
            stage.policy(&["push", "--settings", &stage.settings("x:2"), "--for", "agent", "--timeout", "0"]).await;
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
}

/// Runs `policy push` with settings. As soon as the command has written the ConfigMap, writes the statuses in `says`
/// one after another, as an operator would.
async fn pushed(stage: &Stage, says: &[Value]) -> Ran {
    let settings = stage.settings("x:1");
    let push = ["push", "--settings", settings.as_str(), "--for", "agent", "--timeout", "6"];
    let operator = async {
        while stage.cluster.object("", "configmaps", HOME, "policy-agent-settings").is_none() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        for status in says {
            stage.revision("agent-1", &package("x:1"), 1, status);
            // Wait, so that `policy push` has time to read the status.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    tokio::join!(stage.policy(&push), operator).0
}

/// Returns the status of an active revision. `outstanding` is the number of objects that had no pass with the revision
/// yet.
fn active(outstanding: u8) -> Value {
    json!({"state": "Active", "policy": "agent", "objects": 1, "outstanding": outstanding})
}

#[tokio::test(flavor = "multi_thread")]
async fn push_waits_for_passes_and_fails_if_the_policy_is_quarantined() {
    let stage = Stage::start("push-objects").await;
    team(&stage);
    let ran = pushed(&stage, &[active(2), active(1), json!({"state": "Quarantined", "message": "it failed"})]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("agent-1 is Quarantined: it failed"), "{}", ran.stderr);
    let ran = pushed(&stage, &[active(2), active(0)]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = pushed(&stage, &[active(2)]).await;
    assert!(ran.code == 1 && ran.stderr.contains("2 objects wait for a pass with the revision"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn push_fails_for_objects_on_a_fallback_not_for_earlier_problems() {
    let stage = Stage::start("push-fallback").await;
    team(&stage);
    let says = |name: &str, condition: Value| {
        let mut agent = (*stage.cluster.object("kaos.tools", "agents", "team", name).unwrap()).clone();
        agent["status"]["conditions"] = json!([condition]);
        stage.cluster.plant("kaos.tools", "agents", agent);
    };
    let refused = json!({"type": "Applied", "status": "False", "reason": "ApplyFailed", "message": "as ever"});
    says("a", refused);
    let ran = pushed(&stage, &[active(0)]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let message = "policy revision agent-1 does not answer: the API server refuses its plan";
    says("b", json!({"type": "PolicyFallback", "status": "True", "reason": "FellBack", "message": message}));
    let ran = pushed(&stage, &[active(0)]).await;
    let told = format!("1 object differs from the plan: Agent team/b: {message}");
    assert!(ran.code == 1 && ran.stderr.contains(&told), "{}{}", ran.stdout, ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_reports_children_that_the_api_server_refuses() {
    let stage = Stage::start("plan-immutable").await;
    team(&stage);
    let labels = json!({"app": "of-another-time"});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "agent", "image": "x"}]}});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "agent-a", "namespace": "team"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    });
    let api: Api<Deployment> = Api::namespaced(Client::new(stage.cluster.service(), "team"), "team");
    api.create(&PostParams::default(), &serde_json::from_value(deployment).unwrap()).await.unwrap();
    // Compare without the status, because the controller may write it at any time.
    let looked =
        async || api.get("agent-a").await.map(|it| (it.spec, it.metadata.labels, it.metadata.generation)).unwrap();
    let before = looked().await;
    let settings = stage.settings("x:2");
    let plan = ["plan", "--settings", settings.as_str(), "--for", "agent"];
    let ran = stage.policy(&plan).await;
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.lines().any(|line| line.contains("agent-a") && line.contains("refused")), "{}", ran.stdout);
    let told = "Agent team/a: the API server refuses the planned Deployment team/agent-a: ";
    assert!(ran.stderr.contains(told) && ran.stderr.contains("field is immutable"), "{}", ran.stderr);
    assert_eq!(looked().await, before, "a dry run changes nothing");
    // Without the right for a dry run, `plan` prints a note and still shows the changes.
    stage.cluster.authorise(|attempt| attempt.verb.name() != "patch");
    let ran = stage.policy(&plan).await;
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stderr.contains("cannot check whether the API server accepts the planned apps/v1 Deployment: "),
        "{}",
        ran.stderr
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_of_active_settings_changes_nothing_and_counts_their_objects() {
    let stage = Stage::start("plan-same").await;
    team(&stage);
    stage.revision("agent-1", &package("x:1"), 1, &active(0));
    let ran = stage.policy(&["plan", "--settings", &stage.settings("x:1"), "--for", "agent"]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("Nothing changes for 3 objects."), "{}", ran.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_names_a_policy_that_only_the_flags_of_the_operator_contain() {
    let stage = Stage::start("plan-unnamed").await;
    let template = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guest-policies/template");
    let definition: Value =
        serde_saphyr::from_str(&std::fs::read_to_string(format!("{template}/crd.yaml")).unwrap()).unwrap();
    stage.cluster.plant("apiextensions.k8s.io", "customresourcedefinitions", definition);
    stage.cluster.settled().await;
    let site = |name: &str, status: Value| {
        json!({
            "apiVersion": "example.com/v1", "kind": "Website", "metadata": {"name": name, "namespace": "team"},
            "spec": {"title": "Hello"}, "status": status,
        })
    };
    stage.cluster.plant(
        "example.com",
        "websites",
        site("old", json!({"policy": {"name": "site", "version": "1.0.0"}})),
    );
    stage.cluster.plant("example.com", "websites", site("new", json!({})));
    let script = format!("{template}/javascript/policy.js");
    let ran = stage.policy(&["plan", &script]).await;
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
    let told = "Website team/old: policy site answers for this object, but no PolicyRevision contains this policy";
    assert!(ran.stderr.contains(told) && ran.stderr.contains("name its component with --policy"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("Website team/new: policy"), "{}", ran.stderr);
    let ran = stage.policy(&["plan", &script, "--policy", &script]).await;
    assert_eq!((ran.code, ran.stderr.contains("answers for this object")), (0, false), "{}{}", ran.stdout, ran.stderr);
}
