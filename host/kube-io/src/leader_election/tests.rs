use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use k8s_openapi::{api::coordination::v1::Lease, jiff::Timestamp};
use kaos_cluster::{Cluster, TokioClock};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::{Service as _, service_fn};

use super::*;

const NAMESPACE: &str = "default";

fn cluster() -> Cluster {
    Cluster::builder().clock(TokioClock::starting_at(Timestamp::UNIX_EPOCH)).start()
}

fn replica(cluster: &Cluster, name: &str) -> (Election, Fence) {
    let fence = Fence::closed_at_first();
    let client = Client::new(cluster.service(), NAMESPACE);
    (Election::new(client, NAMESPACE, name.to_owned(), Timing::default(), fence.clone()), fence)
}

/// Returns a replica. The requests of the replica get no answer while `silent` is true.
fn replica_behind(cluster: &Cluster, name: &str, silent: &Arc<AtomicBool>) -> (Election, Fence) {
    let (service, silent) = (cluster.service(), Arc::clone(silent));
    let service = service_fn(move |request| {
        let (mut service, silent) = (service.clone(), Arc::clone(&silent));
        async move {
            if silent.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            service.call(request).await
        }
    });
    let fence = Fence::closed_at_first();
    let client = Client::new(service, NAMESPACE);
    (Election::new(client, NAMESPACE, name.to_owned(), Timing::default(), fence.clone()), fence)
}

fn lease(cluster: &Cluster) -> Arc<Value> {
    cluster.object("coordination.k8s.io", "leases", NAMESPACE, LEASE).expect("the lease")
}

#[tokio::test(start_paused = true)]
async fn the_first_replica_gets_the_lease_at_once_and_the_second_waits() {
    let cluster = cluster();
    let (first, first_fence) = replica(&cluster, "first");
    let held = first.win().await;
    assert!(first_fence.is_open());
    let (second, second_fence) = replica(&cluster, "second");
    let mut standing = second.standing();
    let waiting = tokio::spawn(second.win());
    standing
        .wait_for(|standing| *standing == Standing::Behind("first".to_owned()))
        .await
        .expect("the standing is reported");
    assert!(!second_fence.is_open() && !waiting.is_finished());
    assert_eq!(lease(&cluster)["spec"]["holderIdentity"], "first");
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_released_is_taken_at_the_next_look() {
    let cluster = cluster();
    let (first, first_fence) = replica(&cluster, "first");
    let held = first.win().await;
    let (second, _) = replica(&cluster, "second");
    let waiting = tokio::spawn(second.win());
    let start = Instant::now();
    held.release().await.expect("the release succeeds");
    assert!(!first_fence.is_open());
    waiting.await.expect("it wins");
    assert!(start.elapsed() < Timing::default().duration);
    assert_eq!(lease(&cluster)["spec"]["leaseTransitions"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_is_gone_is_replaced_after_the_lease_time_and_not_before() {
    let cluster = cluster();
    let (first, first_fence) = replica(&cluster, "first");
    drop(first.win().await);
    let (second, _) = replica(&cluster, "second");
    let start = Instant::now();
    second.win().await;
    assert!(start.elapsed() >= Timing::default().duration);
    assert!(!first_fence.is_open(), "the first replica would still write");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_renewed_is_never_taken() {
    let cluster = cluster();
    let (first, first_fence) = replica(&cluster, "first");
    let mut held = first.win().await;
    let keeping = tokio::spawn(async move { held.keep().await });
    let (second, second_fence) = replica(&cluster, "second");
    let waiting = tokio::spawn(second.win());
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert!(first_fence.is_open() && !second_fence.is_open());
    assert!(!waiting.is_finished() && !keeping.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_hears_nothing_stops_writing_before_another_may() {
    let cluster = cluster();
    let silent = Arc::new(AtomicBool::new(false));
    let (first, first_fence) = replica_behind(&cluster, "first", &silent);
    let mut held = first.win().await;
    let won = Instant::now();
    silent.store(true, Ordering::Relaxed);
    let (second, second_fence) = replica(&cluster, "second");
    let waiting = tokio::spawn(second.win());
    let lost = held.keep().await;
    assert!(matches!(lost, Lost::NotRenewed { .. }), "{lost}");
    assert!(lost.to_string().contains("did not respond"), "{lost}");
    assert!(!first_fence.is_open() && !second_fence.is_open());
    assert_eq!(won.elapsed(), Timing::default().renew_deadline);
    waiting.await.expect("it wins");
    assert!(second_fence.is_open() && !first_fence.is_open());
    assert!(won.elapsed() >= Timing::default().duration);
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_slept_too_long_finds_its_fence_closed() {
    let cluster = cluster();
    let (first, first_fence) = replica(&cluster, "first");
    let mut held = first.win().await;
    // Suspend the process for a minute, so that another replica takes over.
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(!first_fence.is_open());
    let (second, second_fence) = replica(&cluster, "second");
    let mut second = second.win().await;
    let keeping = tokio::spawn(async move { second.keep().await });
    let lost = held.keep().await;
    assert!(matches!(lost, Lost::NotRenewed { .. } | Lost::Taken(_)), "{lost}");
    assert!(!first_fence.is_open() && second_fence.is_open() && !keeping.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_write_of_another_client_to_the_lease_is_no_loss_but_another_holder_is() {
    let cluster = cluster();
    let api: Api<Lease> = Api::namespaced(Client::new(cluster.service(), NAMESPACE), NAMESPACE);
    let (first, _) = replica(&cluster, "first");
    let mut held = first.win().await;
    let patch = |patch: Value| {
        let api = api.clone();
        async move { api.patch(LEASE, &PatchParams::default(), &Patch::Merge(patch)).await.expect("a patch") }
    };
    patch(json!({"metadata": {"labels": {"seen": "yes"}}})).await;
    let kept = tokio::time::timeout(Duration::from_mins(1), held.keep()).await;
    assert!(kept.is_err(), "a label is no reason to stop: {kept:?}");
    patch(json!({"spec": {"holderIdentity": "somebody"}})).await;
    assert_eq!(held.keep().await, Lost::Taken("somebody".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_deleted_is_lost() {
    let cluster = cluster();
    let (first, fence) = replica(&cluster, "first");
    let mut held = first.win().await;
    let api: Api<Lease> = Api::namespaced(Client::new(cluster.service(), NAMESPACE), NAMESPACE);
    api.delete(LEASE, &DeleteParams::default()).await.expect("it goes");
    assert_eq!(held.keep().await, Lost::Gone);
    assert!(!fence.is_open());
}

#[tokio::test(start_paused = true)]
async fn of_many_replicas_that_see_an_old_lease_one_takes_it() {
    let cluster = cluster();
    drop(replica(&cluster, "gone").0.win().await);
    let (replicas, fences): (Vec<_>, Vec<_>) = (0..8).map(|number| replica(&cluster, &format!("r{number}"))).unzip();
    let racing: Vec<_> = replicas
        .into_iter()
        .map(|replica| {
            tokio::spawn(async move {
                let mut held = replica.win().await;
                held.keep().await
            })
        })
        .collect();
    for _ in 0..120 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(fences.iter().filter(|fence| fence.is_open()).count() <= 1);
    }
    assert_eq!(fences.iter().filter(|fence| fence.is_open()).count(), 1);
    assert!(racing.iter().all(|replica| !replica.is_finished()));
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_may_not_read_the_lease_reports_this_and_keeps_asking() {
    let cluster = cluster();
    cluster.authorise(|attempt| attempt.resource != "leases");
    let (first, _) = replica(&cluster, "first");
    let mut standing = first.standing();
    let waiting = tokio::spawn(first.win());
    let said = standing.wait_for(|standing| matches!(standing, Standing::Unknown(text) if text.contains("cannot")));
    said.await.expect("the standing is reported");
    cluster.allow_everything();
    waiting.await.expect("it wins");
}
