//! `kaos-operator policy plan` and `push` beside what a cluster holds already.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/stage.rs"]
mod stage;
mod support;

use kaos_operator::package::Package;
use serde_json::json;
use stage::{HOME, Stage, package, team};

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_goes_by_who_claimed_a_place_first_and_not_by_whose_config_map_is_older() {
    let stage = Stage::start("plan-claims").await;
    team(&stage);
    let theirs = Package { name: "theirs".into(), ..package("x:1") };
    let serves = json!({"state": "Active", "policy": "agent", "claimed": "2026-02-01T00:00:00.000001Z"});
    stage.revision("theirs-1", &theirs, 1, &serves);
    // It is older, and holds nothing.
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
        ran.stderr.contains("would not serve: theirs-1 sets `image` of agent in the same place and did first"),
        "{}",
        ran.stderr
    );
    // What holds the place already goes on with its claim, whatever waits for it.
    let own = json!({"state": "Active", "policy": "agent", "claimed": "2026-01-01T00:00:00.000001Z"});
    stage.revision("own-1", &package("x:1"), 1, &own);
    let waits = json!({"state": "Conflict", "policy": "agent", "claimed": "2026-02-01T00:00:00.000001Z"});
    stage.revision("theirs-1", &theirs, 1, &waits);
    let ran = stage.policy(&plan).await;
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("theirs-1 does not serve") && !ran.stderr.contains("no more"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_are_pushed_for_one_scope_leave_those_of_another_alone() {
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
    // Under one name, which has to be asked for, a plan says what would hold no more.
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
    let told = "ConfigMap kaos-system/mine holds in blue, and would hold in team instead";
    assert!(
        ran.code == 2 && ran.stderr.contains(told) && ran.stderr.contains("--name"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
}
