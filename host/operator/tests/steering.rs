//! Steers rollouts with `kaos-operator policy pause`, `resume`, `promote` and `return` on an embedded cluster with a
//! running operator, as a user does. `policy push` follows a rollout.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use kaos_cluster::faults::{Entry, Verb};
use kaos_operator::package::pack;

use crate::stage::{HOME, Process, Stage, package, team};
use crate::support::Ran;

const AGENTS: [&str; 3] = ["a", "b", "c"];

/// Writes a file with a package whose settings change the image of all Agents. `rollout` is as in `policy.yaml`.
fn packed(stage: &Stage, image: &str, rollout: &str) -> String {
    let mut package = package(image);
    package.file.rollout = rollout.parse().unwrap();
    let index = pack(&package.name, &package.namespace, &package.file, None).unwrap().index;
    stage.folder.write("packed.json", serde_json::to_string(&index).unwrap())
}

/// Returns the images of the Agents' Deployments.
fn images(stage: &Stage) -> Vec<String> {
    let deployments = AGENTS.iter().filter_map(|agent| {
        let deployment = stage.cluster.object("apps", "deployments", "team", &format!("agent-{agent}"))?;
        let image = deployment.pointer("/spec/template/spec/containers/0/image")?;
        Some(image.as_str().unwrap_or_default().to_owned())
    });
    deployments.collect()
}

/// Waits until exactly `many` Agents have the image `image`.
async fn until_image(stage: &Stage, image: &str, many: usize) {
    for attempt in 0.. {
        let images = images(stage);
        if images.len() == AGENTS.len() && images.iter().filter(|it| *it == image).count() == many {
            break;
        }
        assert!(attempt < 1200, "not {many} Agents have the image {image}: {images:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Waits until `policy list` prints this text.
async fn until_listed(stage: &Stage, told: &str) {
    let mut listed = String::new();
    for _ in 0..300 {
        listed = stage.policy(&["list", "-o", "wide"]).await.stdout;
        if listed.contains(told) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("`policy list` does not show {told}: {listed}");
}

/// Waits until a command that runs at the same time has read the current PolicyRevisions. Such a command reads them at
/// intervals, so it would miss a state that lasts only for a moment. This function waits for two reads, because the
/// first read can have begun before this call.
async fn until_read_again(stage: &Stage) {
    let is_read = |entry: &Entry| {
        entry.attempt.resource == "policyrevisions" && matches!(entry.attempt.verb, Verb::Get | Verb::List)
    };
    let before = stage.cluster.journal().count(is_read);
    for attempt in 0.. {
        if stage.cluster.journal().count(is_read) >= before + 2 {
            return;
        }
        assert!(attempt < 1200, "no command reads the PolicyRevisions");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Starts an operator, pushes settings with an image, and waits until all Agents have this image.
async fn started(name: &str) -> (Stage, Process) {
    let stage = Stage::start(name).await;
    team(&stage);
    let operator = Process::operator(&stage);
    let settings = packed(&stage, "registry.example/agent:1", "");
    let ran = stage.policy(&["push", &settings]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    until_image(&stage, "registry.example/agent:1", 3).await;
    (stage, operator)
}

/// Checks that a command succeeded and printed these texts.
fn printed(ran: &Ran, texts: &[&str]) {
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    for text in texts {
        assert!(ran.stdout.contains(text) || ran.stderr.contains(text), "{text}: {}{}", ran.stdout, ran.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_pauses_resumes_promotes_and_returns_a_rollout() {
    let (stage, _operator) = started("steering").await;
    let staged = "{mode: staged, steps: [1, 2, 100%], pause: 1h}";
    let ran = stage.policy(&["push", &packed(&stage, "registry.example/agent:2", staged), "--wait", "active"]).await;
    printed(&ran, &["is Active (RollingOut)"]);
    until_image(&stage, "registry.example/agent:2", 1).await;
    until_listed(&stage, "step 1 of 3 (1): 1 of 3 objects moved").await;

    let ran = stage.policy(&["pause", "agent"]).await;
    let paused = "is Active (RolloutPaused): step 1 of 3 (1): 1 of 3 objects moved, paused: PausedByPerson; admin paused \
                  the rollout";
    printed(&ran, &["requested: pause of PolicyRevision", "by admin", paused]);
    let ran = stage.policy(&["resume", "policy-agent-settings"]).await;
    printed(&ran, &["is Active (RollingOut): step 1 of 3 (1): 1 of 3 objects moved; resumed by admin"]);
    let ran = stage.policy(&["promote", "agent"]).await;
    printed(&ran, &["is Active (RolledOut): 3 of 3 objects moved; promoted by admin"]);
    until_image(&stage, "registry.example/agent:2", 3).await;
    let ran = stage.policy(&["pause", "agent"]).await;
    assert!(
        ran.code == 2 && ran.stderr.contains("no package with this name has a rollout in progress"),
        "{}",
        ran.stderr
    );

    let ran = stage.policy(&["push", &packed(&stage, "registry.example/agent:3", staged), "--wait", "active"]).await;
    printed(&ran, &["is Active (RollingOut)"]);
    until_image(&stage, "registry.example/agent:3", 1).await;
    let ran = stage.policy(&["return", "agent"]).await;
    printed(&ran, &["is Quarantined (Returned)", "admin returned to the revision that served before"]);
    until_image(&stage, "registry.example/agent:2", 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn push_prints_the_progress_of_a_rollout() {
    let (stage, _operator) = started("following").await;
    let staged = "{mode: staged, steps: [1, 100%], pause: 1h, maxUnavailable: 100%}";
    let settings = packed(&stage, "registry.example/agent:2", staged);
    let (step, paused) = ("step 1 of 2 (1): 1 of 3 objects moved", ", paused: PausedByPerson");
    let steers = async {
        until_listed(&stage, step).await;
        printed(&stage.policy(&["pause", "agent"]).await, &[paused]);
        until_read_again(&stage).await;
        printed(&stage.policy(&["promote", "agent"]).await, &["3 of 3 objects moved"]);
    };
    let push: [&str; 2] = ["push", &settings];
    let (ran, ()) = tokio::join!(stage.policy(&push), steers);
    printed(&ran, &["is Active: agent (settings)"]);
    let line = ran.stderr.lines().find(|line| line.contains(&format!("{step}{paused}")));
    let line = line.unwrap_or_else(|| panic!("no line about the pause: {}", ran.stderr));
    assert!(line.starts_with("waiting: PolicyRevision policy-agent-settings-"), "{line}");
    assert_eq!(images(&stage), ["registry.example/agent:2"; 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_verbs_say_that_no_operator_acts() {
    let stage = Stage::start("steering-none").await;
    let rollout = serde_json::json!({
        "summary": "step 1 of 2 (1): 1 of 3 objects moved", "started": "2026-01-01T00:00:00Z", "by": "object",
        "pause": "5m", "patience": "10m", "salt": "s", "steps": [{"share": "1", "since": "2026-01-01T00:00:00Z"}],
    });
    let status = serde_json::json!({"state": "Active", "policy": "agent", "reason": "RollingOut", "rollout": rollout});
    stage.revision("agent-1", &package("x:1"), 1, &status);
    let ran = stage.policy(&["promote", "agent-1", "--timeout", "1", "--operator-namespace", HOME]).await;
    assert!(ran.code == 1 && ran.stderr.contains("is it running?"), "{}{}", ran.stdout, ran.stderr);
    let ran = stage.policy(&["return", "nobody"]).await;
    assert!(ran.code == 2 && ran.stderr.contains("policy list"), "{}", ran.stderr);
}
