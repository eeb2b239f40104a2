//! Two replicas of the operator. Only one replica writes.

use std::collections::BTreeSet;

use kaos_tests::control_plane::Process;
use kaos_tests::harness::read::text;
use kaos_tests::harness::samples::model_api;
use serde_json::Value;

use crate::support::{LEASE, Release, SYSTEM, USER, ending, until, until_ready};

fn named(prefix: &str, count: usize) -> Vec<Value> {
    (0..count).map(|number| model_api(&format!("{prefix}-{number}"))).collect()
}

#[tokio::test]
async fn after_the_leader_is_killed_only_the_other_replica_writes() {
    let release = Release::install(&["--set", "controllerManager.replicas=2"]).await;
    let (system, world) = (release.over(SYSTEM), release.world("two").await);
    let mark = release.cluster.audit().mark().unwrap();
    let (first, second) = (release.operator(&[]).await, release.operator(&[]).await);
    let pair = [&first, &second];
    until("one replica leads", &first, || pair.iter().any(|operator| operator.leads())).await;
    until("both replicas are ready", &second, || pair.iter().all(|operator| operator.is_ready())).await;
    assert_eq!(pair.iter().filter(|operator| operator.leads()).count(), 1);
    let (mut leader, other): (Process, Process) = if first.leads() { (first, second) } else { (second, first) };
    assert!(other.get("/readyz").contains("standing by for"), "{}", other.get("/readyz"));

    world.apply_all(&named("early", 20)).await;
    world.until_true("work has begun", async || world.list("Deployment").await.len() > 3).await;
    let before = text(&system.look(LEASE).await["spec"]["holderIdentity"]).to_owned();
    leader.kill();
    world.apply_all(&named("late", 5)).await;
    until("the other replica leads", &other, || other.leads()).await;
    until_ready(&world, &named("early", 20)).await;
    until_ready(&world, &named("late", 5)).await;
    assert_ne!(text(&system.look(LEASE).await["spec"]["holderIdentity"]), before);

    // Each replica has its own token, so the token's ID in the audit log shows which replica sent a request.
    let asked = release.cluster.audit().since(mark, USER).unwrap();
    let mut writes: Vec<_> = asked.iter().filter(|request| request.writes() && request.resource != "leases").collect();
    writes.sort_by(|one, other| one.at.cmp(&other.at));
    let writers: BTreeSet<&str> = writes.iter().map(|request| request.credential.as_str()).collect();
    assert_eq!(writers.len(), 2, "{writers:?}");
    let changes = writes.windows(2).filter(|pair| pair[0].credential != pair[1].credential).count();
    assert_eq!(changes, 1, "both replicas wrote at the same time: {writes:#?}");
}

#[tokio::test]
async fn a_replica_that_loses_the_lease_exits_at_once() {
    let release = Release::install(&[]).await;
    let system = release.over(SYSTEM);
    let operator = release.working_operator().await;
    let taken = serde_json::json!({"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 3600}});
    system.patch(LEASE, &taken).await;
    let (code, log) = ending(operator).await;
    assert_eq!(code, Some(1), "{log}");
    assert_eq!(text(&system.look(LEASE).await["spec"]["holderIdentity"]), "somebody");
}
