//! G4: replicas of the operator that share a Lease.

use kaos_operator::leader_election::Timing;
use kaos_tests::harness::replicas::{second_writers, user};
use kaos_tests::harness::samples::model_api;
use kaos_tests::harness::{Scenario, World, play};
use tokio::time::Instant;

/// How many times the test kills the leader.
const KILLS: usize = 6;

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
            // A waiting replica polls the Lease. So the replica may notice both the last renewal and the expiry one
            // poll interval late.
            let Timing { duration, retry_period, .. } = Timing::default();
            let took = killed.elapsed();
            assert!(took <= duration + 3 * retry_period, "the takeover took {took:?}");
            for name in [early, late] {
                w.until_ready(&format!("ModelAPI/{name}")).await;
            }
            w.spawn_replica(&leader);
            leader = next;
        }
        assert_eq!(second_writers(&w.embedded().journal().entries()), [""; 0]);
    });
}
