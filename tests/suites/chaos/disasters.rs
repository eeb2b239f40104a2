//! The disasters that happen to the cluster.

use std::time::Duration;

use fastrand::Rng;
use kaos_tests::control_plane::ControlPlane;
use kaos_tests::harness::World;
use kaos_tests::harness::kinds::Kind;
use kaos_tests::harness::samples::config_map;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::keeper::Keeper;
use crate::proxy::Proxy;

/// A disaster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disaster {
    /// The test kills kube-apiserver and restarts it.
    ApiServer,
    /// The test compacts etcd's history, and then kills and restarts kube-apiserver. No watch can resume.
    ApiServerAndHistory,
    /// The test kills etcd and restarts it.
    Etcd,
    /// The test compacts old revisions in etcd.
    Compaction,
    /// The proxy resets every connection of the operator.
    Cut,
    /// The test kills the operator, and starts another operator.
    Kill,
    /// The test kills the operator, and starts another operator only after some actions of users.
    KillAndStay,
    /// The test stops the operator gracefully, and starts another operator.
    Stop,
}

use Disaster::{ApiServer, ApiServerAndHistory, Compaction, Cut, Etcd, Kill, KillAndStay, Stop};

/// Returns the disasters of a run. Every run contains the same disasters, in a random order.
pub(crate) fn deck(rng: &mut Rng) -> Vec<Disaster> {
    let mut deck = vec![ApiServer, ApiServerAndHistory, Etcd, Compaction, Cut, Cut, Kill, Kill, KillAndStay, Stop];
    rng.shuffle(&mut deck);
    deck
}

/// The time limit until a restarted part of the cluster works again.
const PATIENCE: Duration = Duration::from_mins(2);

/// Makes a disaster happen, and waits until the API server works again.
pub(crate) async fn happen(
    what: Disaster,
    (cluster, w): (&ControlPlane, &World),
    proxy: &Proxy,
    keeper: &mut Keeper<'_>,
    rng: &mut Rng,
) {
    match what {
        ApiServer | ApiServerAndHistory => {
            if what == ApiServerAndHistory {
                cluster.storage().compact().unwrap();
            }
            restart("kube-apiserver", (cluster, w), keeper, rng).await;
        }
        Etcd => restart("etcd", (cluster, w), keeper, rng).await,
        Compaction => cluster.storage().compact().unwrap(),
        Cut => proxy.cut(),
        Kill => {
            keeper.kill();
            keeper.start(rng);
        }
        // Start no operator here: the module `run` starts another operator after some actions of users.
        KillAndStay => keeper.kill(),
        Stop => {
            keeper.stop();
            keeper.start(rng);
        }
    }
}

async fn restart(part: &str, (cluster, w): (&ControlPlane, &World), keeper: &mut Keeper<'_>, rng: &mut Rng) {
    cluster.kill(part).unwrap();
    let away = Duration::from_millis(rng.u64(..3000));
    keeper.pass(away, rng).await;
    cluster.revive(part).unwrap();
    until_it_works(w, keeper, rng).await;
}

/// Waits until the API server responds and stores objects again.
pub(crate) async fn until_it_works(w: &World, keeper: &mut Keeper<'_>, rng: &mut Rng) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let pulse = config_map("pulse", &json!({"beat": rng.u32(..).to_string()}));
        if w.try_apply(&pulse).await.is_ok() && w.try_list_in(Kind::named("Deployment"), &w.namespace).await.is_ok() {
            return;
        }
        assert!(Instant::now() < deadline, "the cluster does not come back");
        keeper.pass(Duration::ZERO, rng).await;
        sleep(Duration::from_millis(100)).await;
    }
}
