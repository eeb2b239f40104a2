//! Runs `kaos-operator release` on an embedded cluster, like the chart's hook or a user.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::stage::{HOME, Stage, package, team};
use kaos_operator::package::{Package, pack};
use serde_json::json;

const RELEASE: [&str; 3] = ["release", "-n", HOME];

/// Adds the finalizer of the Go operator to an Agent of the team.
fn hold(stage: &Stage, name: &str) {
    let mut agent = stage.cluster.object("kaos.tools", "agents", "team", name).unwrap().as_ref().clone();
    agent["metadata"]["finalizers"] = json!(["kaos.tools/agent-finalizer"]);
    stage.cluster.plant("kaos.tools", "agents", agent);
}

fn is_held(stage: &Stage, name: &str) -> bool {
    let agent = stage.cluster.object("kaos.tools", "agents", "team", name).unwrap();
    agent["metadata"]["finalizers"].as_array().is_some_and(|held| !held.is_empty())
}

#[tokio::test(flavor = "multi_thread")]
async fn release_warns_of_a_deleted_namespace_and_releases_the_others() {
    let stage = Stage::start("release-gone").await;
    team(&stage);
    hold(&stage, "a");
    stage.cluster.authorise(|attempt| attempt.namespace != "gone");
    let ran = stage.ask(&[&RELEASE[..], &["--namespaces", "gone,team"]].concat()).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("1 released, 0 failed"), "{}", ran.stdout);
    assert!(!is_held(&stage, "a"));
    let warned = "warning: no object in namespace gone was released";
    assert_eq!(ran.stderr.matches(warned).count(), 1, "{}", ran.stderr);
    for told in ["cannot list resource", "release --keep-lease --namespaces gone"] {
        assert!(ran.stderr.contains(told), "{told}: {}", ran.stderr);
    }
    let told = stage.ask(&[&RELEASE[..], &["--namespaces", "gone,team", "-o", "json"]].concat()).await.json();
    assert_eq!(told[0]["namespace"], "gone", "{told:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn release_without_any_rights_succeeds_and_changes_nothing() {
    let stage = Stage::start("release-refused").await;
    team(&stage);
    hold(&stage, "a");
    stage.cluster.authorise(|_| false);
    for scope in [&[][..], &["--namespaces", "team"]] {
        let ran = stage.ask(&[&RELEASE[..], scope].concat()).await;
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("0 released, 0 failed"), "{}", ran.stdout);
        assert!(ran.stderr.contains("because this user can read none"), "{}", ran.stderr);
        for noise in ["ApiError", "Status {", ": Forbidden"] {
            assert!(!ran.stderr.contains(noise), "{noise}: {}", ran.stderr);
        }
    }
    assert!(is_held(&stage, "a"));
    // If the user can read only some of the kinds, `release` fails, so that the user adds the missing rights.
    stage.cluster.authorise(|attempt| attempt.resource != "modelapis");
    let ran = stage.ask(&RELEASE).await;
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("1 released, 1 failed"), "{}", ran.stdout);
    assert!(ran.stderr.contains("error: ModelAPI objects cannot be listed"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn release_without_crds_succeeds() {
    let stage = Stage::bare("release-bare").await;
    let ran = stage.ask(&RELEASE).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("no Agent: the cluster does not serve the type"), "{}", ran.stdout);
    assert!(!ran.stderr.contains("PolicyRevision"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn release_deletes_records_of_removed_policies_only() {
    let stage = Stage::start("release-records").await;
    let from = |source: &str, image: &str| Package { name: source.to_owned(), ..package(image) };
    let source = pack("there", HOME, &from("there", "x:2").file, None).unwrap().index;
    stage.cluster.plant("", "configmaps", serde_json::to_value(source).unwrap());
    let states = [
        ("there-1", from("there", "x:1"), json!({"state": "Superseded"})),
        ("there-2", from("there", "x:2"), json!({"state": "Active", "predecessor": "before-1"})),
        ("before-1", from("before", "x:0"), json!({"state": "Superseded"})),
        ("aside-1", from("aside", "x:9"), json!({"state": "Quarantined"})),
        ("gone-1", from("gone", "x:3"), json!({"state": "Active"})),
    ];
    for (age, (name, package, status)) in states.iter().enumerate() {
        stage.revision(name, package, u32::try_from(age).unwrap(), status);
    }
    let left = || {
        let is_left = |name: &str| stage.cluster.object("kaos.tools", "policyrevisions", HOME, name).is_some();
        states.iter().map(|(name, ..)| *name).filter(|name| is_left(name)).collect::<Vec<&str>>()
    };
    let all = left();
    for flag in ["--dry-run", "--keep-lease"] {
        let ran = stage.ask(&[&RELEASE[..], &[flag]].concat()).await;
        assert_eq!((ran.code, left()), (0, all.clone()), "{flag}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.stdout.contains("would remove PolicyRevision kaos-system/gone-1"), flag == "--dry-run");
    }
    // The PolicyRevisions stay: they name the kinds whose objects a later run with more rights must release.
    stage.cluster.authorise(|attempt| attempt.namespace != "barred");
    let ran = stage.ask(&[&RELEASE[..], &["--namespaces", "barred,team"]].concat()).await;
    assert_eq!((ran.code, left()), (0, all), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("no object in namespace barred was released"), "{}", ran.stderr);
    stage.cluster.allow_everything();
    let ran = stage.ask(&RELEASE).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("removed PolicyRevision kaos-system/gone-1"), "{}", ran.stdout);
    assert_eq!(left(), ["there-1", "there-2", "before-1", "aside-1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn release_of_namespaces_keeps_other_records_unless_for_good() {
    let stage = Stage::start("release-named").await;
    let records = [(HOME, "home-1"), ("team", "team-1"), ("other", "other-1")];
    for (age, (namespace, name)) in (0_u32..).zip(records) {
        let package = Package { name: "gone".to_owned(), namespace: namespace.to_owned(), ..package("x:1") };
        stage.record(name, &package, age, &json!({"state": "Active"}));
    }
    let fitted = "kaos-operator-config-fitted";
    stage.cluster.plant(
        "",
        "configmaps",
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": fitted, "namespace": HOME}}),
    );
    let left = || {
        let is_left = |name: &str| stage.cluster.object("kaos.tools", "policyrevisions", HOME, name).is_some();
        let mut left: Vec<&str> = records.iter().map(|(_, name)| *name).filter(|name| is_left(name)).collect();
        left.extend(stage.cluster.object("", "configmaps", HOME, fitted).map(|_| fitted));
        left
    };
    let release = async |further: &[&str]| {
        let ran = stage.ask(&[&RELEASE[..], &["--namespaces", "team"], further].concat()).await;
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        ran.stdout
    };
    let told = release(&[]).await;
    assert_eq!(left(), ["home-1", "other-1", fitted], "{told}");
    assert!(told.contains("removed PolicyRevision kaos-system/team-1"), "{told}");
    let told = release(&["--for-good", "--dry-run"]).await;
    assert_eq!(left(), ["home-1", "other-1", fitted], "{told}");
    assert!(told.contains("would remove PolicyRevision kaos-system/home-1"), "{told}");
    let told = release(&["--for-good"]).await;
    assert_eq!(left(), [""; 0], "{told}");
    let ran = stage.ask(&[&RELEASE[..], &["--keep-lease", "--for-good"]].concat()).await;
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
}
