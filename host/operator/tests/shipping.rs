//! Runs `kaos-operator policy push`, `list` and `rollback` on an embedded cluster, as a user does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use crate::stage::{HOME, Process, Stage, edition, package, team};
use kaos_cluster::faults::{Attempt, Failure, NoFaults, Outcome, Verb, Verdict};
use kaos_operator::package::{Package, pack};
use kaos_policy::digest::Digest;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn push_applies_a_package_and_waits_for_its_revision() {
    let stage = Stage::start("push").await;
    let active = json!({"state": "Active", "policy": "agent", "kinds": ["kaos.tools/v1alpha1 Agent"], "objects": 2, "outstanding": 0});
    stage.revision("agent-1", &package("x:1"), 1, &active);
    let ran = stage.policy(&["push", "--settings", &stage.settings("x:1"), "--for", "agent"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("PolicyRevision agent-1 is Active: agent"), "{}", ran.stdout);
    assert_eq!(stage.stored("policy-agent-settings").digest(), package("x:1").digest());
}

#[tokio::test(flavor = "multi_thread")]
async fn unlisted_chunks_are_deleted_after_the_package_serves() {
    let stage = Stage::start("push-chunks").await;
    for (name, index) in [("old-1", "policy-agent-settings"), ("other-1", "other")] {
        let chunk = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "binaryData": {"part": "AAAA"},
            "metadata": {
                "name": name, "namespace": HOME, "labels": {"kaos.tools/policy": "chunk"},
                "annotations": {"kaos.tools/policy-index": index},
            },
        });
        stage.cluster.plant("", "configmaps", chunk);
    }
    let settings = stage.settings("x:1");
    let push = ["push", "--settings", settings.as_str(), "--for", "agent"];
    let there = |name: &str| stage.cluster.object("", "configmaps", HOME, name).is_some();
    stage.revision("agent-1", &package("x:1"), 1, &json!({"state": "Refused", "message": "not this one"}));
    assert_eq!(stage.policy(&push).await.code, 1);
    assert!(there("old-1"), "the serving revision may still need the chunk");
    stage.revision("agent-1", &package("x:1"), 1, &json!({"state": "Active", "policy": "agent", "outstanding": 0}));
    assert_eq!(stage.policy(&push).await.code, 0);
    assert!(!there("old-1") && there("other-1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn push_of_a_refused_package_ends_with_1_and_prints_the_reason() {
    let stage = Stage::start("push-refused").await;
    let message = "the operator is not allowed to watch kites";
    let refused = json!({"state": "NotPermitted", "reason": "NotPermitted", "message": message});
    stage.revision("agent-1", &package("x:1"), 1, &refused);
    let ran = stage.policy(&["push", "--settings", &stage.settings("x:1"), "--for", "agent"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(
        ran.stderr.contains("agent-1 is NotPermitted: the operator is not allowed to watch kites"),
        "{}",
        ran.stderr
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn push_ignores_an_old_quarantine_while_the_package_is_retried() {
    let stage = Stage::start("push-again").await;
    let put_aside = json!({"state": "Quarantined", "message": "it failed", "since": "2026-01-01T00:00:01Z"});
    stage.revision("agent-1", &package("x:1"), 1, &put_aside);
    let settings = stage.settings("x:1");
    let push = ["push", "--settings", settings.as_str(), "--for", "agent"];
    let tried_again = async {
        // Wait at most two minutes: a push that fails early writes no ConfigMap.
        for _ in 0..1200 {
            if stage.cluster.object("", "configmaps", HOME, "policy-agent-settings").is_some() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        // Give the push time to read the status more than once.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let active = json!({"state": "Active", "policy": "agent", "outstanding": 0, "retried": "1"});
        stage.revision("agent-1", &package("x:1"), 1, &active);
    };
    let (ran, ()) = tokio::join!(stage.policy(&push), tried_again);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    // If no operator checks the package again, the message contains the command that requests another check.
    stage.revision("agent-1", &package("x:1"), 1, &put_aside);
    let ran = stage.policy(&push).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    for told in [
        "agent-1 is Quarantined: it failed (the operator refused or quarantined this package before",
        "kaos.tools/retry=1",
    ] {
        assert!(ran.stderr.contains(told), "{told}: {}", ran.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn push_uses_the_namespace_of_a_packed_file() {
    let stage = Stage::start("push-packed").await;
    let theirs = Package { namespace: "team".into(), ..package("x:1") };
    let packed = pack(&theirs.name, &theirs.namespace, &theirs.file, None).unwrap().index;
    let packed = stage.folder.write("packed.json", serde_json::to_string(&packed).unwrap());
    let ran = stage.policy(&["push", &packed, "-n", HOME]).await;
    let why = "--namespace kaos-system: the file was packed for namespace team";
    assert!(ran.code == 2 && ran.stderr.contains(why), "{}", ran.stderr);
    // The revision is in the operator's namespace, and not in the namespace of the ConfigMap.
    stage.revision("team.agent-1", &theirs, 1, &json!({"state": "Active", "policy": "agent", "outstanding": 0}));
    let ran = stage.policy(&["push", &packed]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(stage.stored_in("team", &theirs.name).digest(), theirs.digest());
}

#[tokio::test(flavor = "multi_thread")]
async fn push_says_that_no_operator_noticed_the_package() {
    let stage = Stage::start("push-nobody").await;
    let ran = stage.policy(&["push", "--settings", &stage.settings("x:1"), "--for", "agent", "--timeout", "1"]).await;
    assert!(ran.code == 1 && ran.stderr.contains("no operator has recorded"), "{}", ran.stderr);
    let settings = stage.settings("x:1");
    let ran = stage.policy(&["push", "--settings", &settings, "--for", "agent", "--timeout", "1", "-n", "team"]).await;
    assert!(ran.code == 1 && ran.stderr.contains("was it started with --namespace-policies"), "{}", ran.stderr);
    let ran = stage.policy(&["push", "--settings", &stage.settings("x:1"), "--for", "agent", "--timeout", "0"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn push_takes_over_fields_of_others_only_with_force_conflicts() {
    let stage = Stage::start("push-conflict").await;
    stage.revision("agent-1", &package("x:1"), 1, &json!({"state": "Active", "policy": "agent", "outstanding": 0}));
    let theirs = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "policy-agent-settings", "namespace": HOME, "labels": {"kaos.tools/policy": "package", "mine": "too"}},
        "data": {"policy.yaml": "name: agent"}, "binaryData": {"policy.wasm": "AGFzbQ=="},
    });
    stage.cluster.plant("", "configmaps", theirs);
    let settings = stage.settings("x:1");
    let push = ["push", "--settings", settings.as_str(), "--for", "agent", "--timeout", "30"];
    let ran = stage.policy(&push).await;
    assert!(ran.code == 2 && ran.stderr.contains("--force-conflicts"), "{}", ran.stderr);
    let ran = stage.policy(&[&push[..], &["--force-conflicts"]].concat()).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(stage.stored("policy-agent-settings").digest(), package("x:1").digest());
    let stored = stage.cluster.object("", "configmaps", HOME, "policy-agent-settings").unwrap();
    assert_eq!(stored["metadata"]["labels"]["mine"], "too");
}

#[tokio::test(flavor = "multi_thread")]
async fn rollback_edits_the_config_map_of_the_policy() {
    let stage = Stage::start("rollback").await;
    stage.revision("agent-1", &package("x:1"), 1, &json!({"state": "Superseded", "policy": "agent"}));
    stage.revision(
        "agent-2",
        &package("x:2"),
        2,
        &json!({"state": "Active", "policy": "agent", "outstanding": 0, "predecessor": "agent-1"}),
    );
    stage.cluster.plant("", "configmaps", {
        let mut index = pack("policy-agent-settings", HOME, &package("x:2").file, None).unwrap().index;
        index.metadata.uid = None;
        serde_json::to_value(index).unwrap()
    });
    let ran = stage.policy(&["rollback", "agent", "--timeout", "0"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(stage.stored("policy-agent-settings").digest(), package("x:1").digest());
    // Return to the revision that served before the rollback. The arguments name the ConfigMap and the revision.
    let ran = stage.policy(&["rollback", "policy-agent-settings", "--to", "agent-2"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(stage.stored("policy-agent-settings").digest(), package("x:2").digest());
}

#[tokio::test(flavor = "multi_thread")]
async fn rollback_changes_nothing_if_the_config_map_is_unreadable() {
    let stage = Stage::start("rollback-blind").await;
    stage.revision("agent-1", &package("x:1"), 1, &json!({"state": "Superseded", "policy": "agent"}));
    let active = json!({"state": "Active", "policy": "agent", "predecessor": "agent-1"});
    stage.revision("agent-2", &package("x:2"), 2, &active);
    let mut index = pack("policy-agent-settings", HOME, &package("x:2").file, None).unwrap().index;
    index.metadata.uid = None;
    stage.cluster.plant("", "configmaps", serde_json::to_value(index).unwrap());
    stage.cluster.set_faults(|attempt: &Attempt, _: &mut fastrand::Rng| {
        let is_it = attempt.verb == Verb::Get && attempt.name == "policy-agent-settings";
        if is_it { Verdict::from(Outcome::FailBefore(Failure::Server(500))) } else { Verdict::default() }
    });
    let ran = stage.policy(&["rollback", "agent", "--timeout", "0"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("ConfigMap policy-agent-settings"), "{}", ran.stderr);
    stage.cluster.set_faults(NoFaults);
    assert_eq!(stage.stored("policy-agent-settings").digest(), package("x:2").digest());
}

#[tokio::test(flavor = "multi_thread")]
async fn rollback_skips_an_active_revision_that_cannot_be_loaded() {
    let stage = Stage::start("rollback-lost").await;
    stage.revision("agent-1", &package("x:1"), 1, &json!({"state": "Superseded", "policy": "agent"}));
    let lost = json!({
        "state": "Active", "policy": "agent", "predecessor": "agent-1", "reason": "NotLoaded",
        "message": "it cannot be loaded any more (BytesLost: what was kept of it is gone or was \
            changed)",
    });
    stage.revision("agent-2", &package("x:2"), 2, &lost);
    let mut index = pack("policy-agent-settings", HOME, &package("x:3").file, None).unwrap().index;
    index.metadata.uid = None;
    stage.cluster.plant("", "configmaps", serde_json::to_value(index).unwrap());
    let ran = stage.policy(&["rollback", "agent", "--timeout", "0"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(stage.stored("policy-agent-settings").digest(), package("x:1").digest());
}

#[tokio::test(flavor = "multi_thread")]
async fn rollback_prefers_the_operators_namespace_unless_one_is_given() {
    let stage = Stage::start("rollback-both").await;
    for (prefix, namespace) in [("", HOME), ("team.", "team")] {
        let of = |image: &str| Package { namespace: namespace.into(), ..package(image) };
        let [one, two] = [1, 2].map(|number| format!("{prefix}agent-{number}"));
        stage.revision(&one, &of("x:1"), 1, &json!({"state": "Superseded", "policy": "agent"}));
        stage.revision(&two, &of("x:2"), 2, &json!({"state": "Active", "policy": "agent", "predecessor": one}));
    }
    let there = |namespace: &str| stage.cluster.object("", "configmaps", namespace, "policy-agent-settings").is_some();
    for named in ["policy-agent-settings", "agent"] {
        let ran = stage.policy(&["rollback", named, "--timeout", "0"]).await;
        assert_eq!((ran.code, there(HOME), there("team")), (0, true, false), "{named}: {}", ran.stderr);
    }
    let ran = stage.policy(&["rollback", "team/policy-agent-settings", "--timeout", "0"]).await;
    assert_eq!((ran.code, there("team")), (0, true), "{}", ran.stderr);
    assert_eq!(stage.stored_in("team", "policy-agent-settings").digest(), package("x:1").digest());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_to_missing_or_changed_bytes_fails() {
    let stage = Stage::start("rollback-none").await;
    let ran = stage.policy(&["rollback", "agent"]).await;
    assert!(ran.code == 2 && ran.stderr.contains("policy list"), "{}", ran.stderr);
    stage.revision("agent-1", &package("x:1"), 1, &json!({"state": "Active", "policy": "agent", "outstanding": 0}));
    let ran = stage.policy(&["rollback", "agent"]).await;
    assert!(ran.code == 2 && ran.stderr.contains("the first revision that served"), "{}", ran.stderr);
    let forged = pack("agent-1", HOME, &package("evil").file, None).unwrap().index;
    stage.cluster.plant("", "configmaps", serde_json::to_value(forged).unwrap());
    let ran = stage.policy(&["rollback", "agent", "--to", "agent-1"]).await;
    assert!(ran.code == 2 && ran.stderr.contains("were changed"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn list_shows_states_object_counts_and_digests() {
    let stage = Stage::start("list").await;
    let ran = stage.policy(&["list", "--operator-namespace", "team"]).await;
    assert!(ran.code == 0 && ran.stdout.contains("in namespace team: "), "{}{}", ran.stdout, ran.stderr);
    let ran = stage.policy(&["list"]).await;
    let none = "No policies are installed for an operator in namespace kaos-system";
    assert!(ran.code == 0 && ran.stdout.contains(none), "{}{}", ran.stdout, ran.stderr);
    stage.revision("agent-1", &package("x:1"), 1, &json!({"state": "Superseded", "policy": "agent"}));
    let active =
        json!({"state": "Active", "policy": "agent", "objects": 9, "outstanding": 4, "since": "2026-01-01T00:00:03Z"});
    stage.revision("agent-2", &package("x:2"), 2, &active);
    let ran = stage.policy(&["list", "--all"]).await;
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines[0].starts_with("REVISION") && lines[1].starts_with("agent-1"), "{}", ran.stdout);
    assert!(lines[2].contains("Active") && lines[2].contains("9 of 13"), "{}", ran.stdout);
    let told = stage.policy(&["list", "--all", "-o", "json"]).await.json();
    assert_eq!(told[1]["packageDigest"], package("x:2").digest().to_string());
    assert!(told[1]["packageDigest"].as_str().unwrap().parse::<Digest>().is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn forbidden_requests_are_reported_once_in_the_servers_words() {
    let stage = Stage::start("forbidden").await;
    stage.cluster.authorise(|_| false);
    let settings = stage.settings("x:1");
    let settings = ["--settings", settings.as_str(), "--for", "agent"];
    let cases: [(&str, &[&str], i32); 6] = [
        ("list", &[], 2),
        ("rollback", &["agent"], 2),
        ("remove", &["agent"], 2),
        ("explain", &["agent/a"], 2),
        ("push", &settings, 2),
        ("plan", &settings, 1),
    ];
    for (verb, more, code) in cases {
        let ran = stage.policy(&[&[verb], more].concat()).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{verb}: {}", ran.stderr);
        assert_eq!(ran.stderr.matches(" is forbidden: ").count(), 1, "{verb}: {}", ran.stderr);
        for noise in ["ApiError", "Status {", ": Forbidden", "does not answer"] {
            assert!(!ran.stderr.contains(noise), "{verb}, {noise}: {}", ran.stderr);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn running_operator_follows_push_plan_explain_and_rollback() {
    let stage = Stage::start("story").await;
    team(&stage);
    let _operator = Process::operator(&stage);
    let image = |image: &str| stage.settings(image);
    for version in ["x:1", "x:2"] {
        let ran = stage.policy(&["push", "--settings", &image(version), "--for", "agent"]).await;
        assert_eq!(ran.code, 0, "{version}: {}", ran.stderr);
        assert!(ran.stdout.contains("is Active: agent"), "{}", ran.stdout);
    }
    let ran = stage.policy(&["plan", "--settings", &image("x:2"), "--for", "agent"]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let told = stage.policy(&["explain", "agent/a", "-n", "team"]).await;
    assert!(
        told.stdout.contains("policy-agent-settings") && told.stdout.contains("x:2"),
        "{}{}",
        told.stdout,
        told.stderr
    );
    let ran = stage.policy(&["rollback", "agent"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(stage.stored("policy-agent-settings").digest(), package("x:1").digest());
    let told = stage.policy(&["explain", "agent/a", "-n", "team"]).await;
    assert!(told.stdout.contains("x:1") && !told.stdout.contains("x:2"), "{}{}", told.stdout, told.stderr);
    let listed = stage.policy(&["list", "--all"]).await.stdout;
    assert!(listed.contains("Active") && listed.contains("Superseded"), "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn push_refuses_settings_that_make_a_pod_invalid() {
    let stage = Stage::start("push-broken").await;
    let settings = stage.folder.write("broken.yaml", "resources: {limit: {memory: 1Gi}}\n");
    let ran = stage.policy(&["push", "--settings", &settings, "--for", "agent", "--timeout", "1"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains(".resources.limit: Kubernetes 1.36 has no field"), "{}", ran.stderr);
    assert!(stage.cluster.object("", "configmaps", HOME, "policy-agent-settings").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn push_refuses_a_scope_that_the_namespace_of_the_package_does_not_allow() {
    let stage = Stage::start("push-scope").await;
    let settings = stage.settings("x:1");
    let wide = ["push", "--namespace", "team", "--scope", "other", "--settings", &settings, "--for", "agent"];
    let ran = stage.policy(&wide).await;
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("a policy in namespace team can apply only in this namespace"), "{}", ran.stderr);
    assert!(ran.stderr.contains("if the operator runs in team, add --operator-namespace team"), "{}", ran.stderr);
    let written = || stage.cluster.object("", "configmaps", "team", "policy-agent-settings.other").is_some();
    assert!(!written());
    let ran = stage.policy(&[&wide[..], &["--operator-namespace", "team", "--timeout", "0"]].concat()).await;
    assert!(ran.code == 0 && written(), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_compiles_policies_after_its_program_file_was_deleted() {
    let stage = Stage::start("deleted").await;
    team(&stage);
    let (_operator, program) = Process::operator_from_copy(&stage);
    let ran = stage.policy(&["push", "--settings", &stage.settings("x:1"), "--for", "agent"]).await;
    assert_eq!(ran.code, 0, "the operator runs: {}", ran.stderr);
    std::fs::remove_file(program).unwrap();
    let Package { component, .. } = edition(1, "{}");
    let agent = kaos_operator::embedded::DEFAULTS.iter().find(|it| it.manifest.contains("name: agent\n")).unwrap();
    stage.folder.write("policy.yaml", agent.manifest);
    let component = stage.folder.write("agent.wasm", component.unwrap().bytes);
    let ran = stage.policy(&["push", &component]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("is Active: agent"), "{}", ran.stdout);
}
