//! G4: replicas of the operator that share a Lease.

use std::collections::BTreeSet;
use std::time::Duration;

use kaos_cluster::faults::Entry;
use kaos_operator::leader_election::Timing;
use kaos_tests::harness::read::counted;
use kaos_tests::harness::replicas::{second_writers, user};
use kaos_tests::harness::samples::model_api;
use kaos_tests::harness::{Scenario, World, condition, play};
use kaos_tests::{shipped, widgets};
use serde_json::json;
use tokio::time::Instant;

/// How many times the test kills the leader.
const KILLS: usize = 6;
/// The maximum simulated time from the expiry of the Lease until another replica leads.
const TAKEOVER: Duration = Duration::from_secs(1);
/// The types that a standby (a replica without the Lease) watches for the default policies.
const WATCHED: [&str; 5] = ["agents", "modelapis", "mcpservers", "deployments", "services"];

/// Waits until a replica other than `than` leads.
async fn until_other(w: &World, than: Option<&str>) -> String {
    let other = async || w.leader().await.filter(|leader| Some(leader.as_str()) != than);
    w.until_true("another replica leads", async || other().await.is_some()).await;
    other().await.unwrap()
}

#[test]
fn g4_a_killed_leader_is_replaced_within_the_lease_time_and_only_one_replica_writes() {
    play(Scenario::embedded("the test simulates time").idle(), async |w| {
        for replica in 1..=3 {
            w.spawn_replica(&user(replica));
        }
        let mut leader = until_other(w, None).await;
        for kill in 0..KILLS {
            let (early, late) = (format!("early-{kill}"), format!("late-{kill}"));
            w.apply(&model_api(&early)).await;
            if kill % 2 == 0 {
                w.until_ready(&format!("ModelAPI/{early}")).await;
            } else {
                // Kill the leader in the middle of its work.
                w.until_true("work has begun", async || !w.list("Deployment").await.is_empty()).await;
            }
            w.crash_one(&leader).await;
            let killed = Instant::now();
            w.apply(&model_api(&late)).await;
            let next = until_other(w, Some(&leader)).await;
            let took = killed.elapsed();
            assert!(took <= Timing::default().duration + TAKEOVER, "the takeover took {took:?}");
            for name in [early, late] {
                w.until_ready(&format!("ModelAPI/{name}")).await;
            }
            w.spawn_replica(&leader);
            leader = next;
        }
        assert_eq!(second_writers(&w.embedded().journal().entries()), [""; 0]);
    });
}

/// Returns the requests of a replica since the journal was cleared.
fn requests_of(w: &World, replica: &str) -> Vec<Entry> {
    let entries = w.embedded().journal().entries();
    entries.into_iter().filter(|entry| entry.attempt.user == replica).collect()
}

/// Waits until a replica has begun to watch every type in [`WATCHED`].
async fn until_it_watches(w: &World, replica: &str) {
    w.until_true("the standby watches", async || {
        let requests = requests_of(w, replica);
        let watches = requests.iter().filter(|entry| !entry.attempt.verb.is_write());
        let watched: BTreeSet<String> = watches.map(|entry| entry.attempt.resource.clone()).collect();
        WATCHED.iter().all(|of| watched.contains(*of)) && w.probe().is_warm()
    })
    .await;
}

#[test]
fn g4_a_standby_watches_and_writes_nothing_and_takes_over_without_listing_again() {
    play(Scenario::embedded("the test simulates time").idle(), async |w| {
        let (leader, standby) = (user(1), user(2));
        w.spawn_replica(&leader);
        until_other(w, None).await;
        w.apply(&model_api("kept")).await;
        w.apply(&model_api("deleted")).await;
        w.until_ready("ModelAPI/kept").await;
        w.until_ready("ModelAPI/deleted").await;
        w.spawn_replica(&standby);
        until_it_watches(w, &standby).await;
        let early: Vec<_> = (0..10).map(|number| model_api(&format!("early-{number}"))).collect();
        w.apply_all(&early).await;
        assert_eq!(w.counted("kaos_operator_queue_depth", &[]), 0.0, "no object waits for a pass of the standby");
        let writes = requests_of(w, &standby).into_iter().filter(|entry| entry.attempt.verb.is_write());
        assert_eq!(writes.map(|entry| entry.to_string()).collect::<Vec<_>>(), [""; 0]);

        w.crash_one(&leader).await;
        w.forget_requests();
        let killed = Instant::now();
        w.apply(&model_api("late")).await;
        w.patch("ModelAPI/kept", &json!({"spec": {"replicas": 2}})).await;
        w.delete("ModelAPI/deleted").await;
        w.until_true("the standby writes", async || {
            requests_of(w, &standby).iter().any(|entry| {
                entry.attempt.verb.is_write() && !["leases", "events"].contains(&entry.attempt.resource.as_str())
            })
        })
        .await;
        let took = killed.elapsed();
        assert!(took <= Timing::default().duration + TAKEOVER, "the first write came after {took:?}");
        for name in (0..10).map(|number| format!("early-{number}")).chain(["late".to_owned()]) {
            w.until_ready(&format!("ModelAPI/{name}")).await;
        }
        w.until("the change is applied", "Deployment/modelapi-kept", |it| it["spec"]["replicas"] == 2).await;
        w.until_gone("ModelAPI/deleted").await;
        let again = requests_of(w, &standby).into_iter().filter(|entry| {
            let attempt = &entry.attempt;
            attempt.name.is_empty() && !attempt.verb.is_write() && WATCHED.contains(&attempt.resource.as_str())
        });
        assert_eq!(again.map(|entry| entry.to_string()).collect::<Vec<_>>(), [""; 0], "the caches are warm");
        assert_eq!(second_writers(&w.embedded().journal().entries()), [""; 0]);
    });
}

#[test]
fn g4_a_standby_compiles_installed_policies_and_takes_over_without_compiling_again() {
    play(Scenario::embedded("the test simulates time").installing(false).idle(), async |w| {
        let compiled = || counted(&w.metrics(), "kaos_operator_policy_compile_duration_seconds_count", &[]);
        w.spawn_replica(&user(1));
        until_other(w, None).await;
        w.apply(&widgets::definition()).await;
        let definition = "CustomResourceDefinition/widgets.test.example.com";
        w.until("Widgets are served", definition, |it| condition(it, "Established")["status"] == "True").await;
        let package =
            |edition: &str| shipped::package("widgets", Some(&widgets::component(edition).unwrap()), "").unwrap();
        let until_edition = async |edition: &str| {
            w.until("the edition serves", "ConfigMap/w", |it| it["data"]["edition"] == edition).await;
        };
        w.apply(&package("1")).await;
        w.apply(&widgets::widget("w", &json!({}))).await;
        until_edition("1").await;
        w.spawn_replica(&user(2));
        w.until_true("the standby has compiled the policy", async || compiled() == 1.0).await;
        // The standby must also compile the next edition. It must keep the first edition, because this edition may have
        // to serve as the fallback.
        w.apply(&package("2")).await;
        until_edition("2").await;
        w.until_true("the standby has compiled the next edition", async || compiled() == 2.0).await;
        w.until_true("the standby is warm", async || w.probe().is_warm()).await;
        w.crash_one(&user(1)).await;
        w.delete("ConfigMap/w").await;
        until_edition("2").await;
        assert_eq!(compiled(), 2.0);
        assert_eq!(second_writers(&w.embedded().journal().entries()), [""; 0]);
    });
}
