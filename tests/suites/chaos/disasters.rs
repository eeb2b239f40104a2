//! What is done to the cluster.

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

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disaster {
    /// kube-apiserver is killed, and started again.
    ApiServer,
    /// The same, and what happened before is forgotten: nobody can go on where they were.
    ApiServerAndHistory,
    /// etcd is killed, and started again.
    Etcd,
    /// Old revisions are forgotten.
    Compaction,
    /// Every connection of the operator is reset.
    Cut,
    /// The operator is killed, and another starts.
    Kill,
    /// The operator is killed, and things happen before another starts.
    KillAndStay,
    /// The operator is told to end, and another starts.
    Stop,
}

use Disaster::{ApiServer, ApiServerAndHistory, Compaction, Cut, Etcd, Kill, KillAndStay, Stop};

/// What each run has at least, in an order of its own.
pub(crate) fn deck(rng: &mut Rng) -> Vec<Disaster> {
    let mut deck = vec![ApiServer, ApiServerAndHistory, Etcd, Compaction, Cut, Cut, Kill, Kill, KillAndStay, Stop];
    rng.shuffle(&mut deck);
    deck
}

/// How long a part may take to be back.
const PATIENCE: Duration = Duration::from_mins(2);

/// Lets one happen, until users can go on.
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
        // Whoever goes on starts another.
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

/// Waits until the API server answers and stores again.
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
