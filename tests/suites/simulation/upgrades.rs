//! Tests upgrades of the operator while it crashes. Users replace the operator by versions with other default policies,
//! approve and steer the rollouts of these policies, and replace MCPServers. Pods fail and crash, and the operator ends
//! at random writes. In every case, the default policy of the last version must serve everywhere at the end.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use fastrand::Rng;
use kaos_operator::catalogue::{DefaultPolicy, DefaultsRollout};
use kaos_tests::default_policies::mcp_servers_with_level;
use kaos_tests::harness::read::name;
use kaos_tests::harness::replicas::user;
use kaos_tests::harness::samples::mcp_server;
use kaos_tests::harness::whims::pick;
use kaos_tests::harness::{Scenario, World, play};
use serde_json::json;

use crate::rollouts::{Run, SERVERS, disturb, end, pass, restore, revisions, run_seeds, with_level};

/// The log levels of the versions between the first and the last version.
const LEVELS: [&str; 4] = ["ERROR", "DEBUG", "WARNING", "INFO"];
/// The log level of the last version. No earlier version in any seed uses this level, so the last default policy cannot
/// be in quarantine.
const LAST: &str = "CRITICAL";
/// The number of seeds in CI.
const SEEDS: u64 = 12;
/// The simulation divides `KAOS_SEEDS` by this number, because the nightly run has no time for more seeds.
const SHARE: u64 = 10;

/// The default policy of MCPServers for each log level.
static POLICIES: LazyLock<BTreeMap<&str, DefaultPolicy>> = LazyLock::new(|| {
    LEVELS.into_iter().chain([LAST]).map(|level| (level, mcp_servers_with_level(level).unwrap())).collect()
});

fn scenario() -> Scenario {
    Scenario::embedded("the test ends the operator during upgrades").installing(false).idle()
}

/// Replaces the operator by the version with this default policy. If `replicas` is empty, stops the operator
/// gracefully, and starts the new version. Otherwise kills and replaces one replica after the other, so that two
/// versions run at the same time for a while.
async fn upgrade(w: &World, level: &str, rollout: DefaultsRollout, replicas: &[String], between: Duration) {
    w.bring(std::slice::from_ref(&POLICIES[level]), rollout);
    if replicas.is_empty() {
        w.stop_all().await;
        w.spawn();
    }
    for replica in replicas {
        w.crash_one(replica).await;
        w.spawn_replica(replica);
        pass(w, between, replicas).await;
    }
}

/// Approves each revision that the operator holds, as a user.
async fn approve(w: &World) {
    for held in revisions(w).await.into_iter().filter(|it| it["status"]["state"] == "Held") {
        let annotations =
            json!({"kaos.tools/approved-by": "alice", "kaos.tools/approved-for": held["status"]["since"]});
        let at = format!("kaos-system:PolicyRevision/{}", name(&held));
        drop(w.try_patch(&at, &json!({"metadata": {"annotations": annotations}})).await);
    }
}

/// Performs one random action of a user, or of the cluster.
async fn act(w: &World, rng: &mut Rng, replicas: &[String]) -> String {
    match rng.u8(..14) {
        0..5 => {
            let level = pick(rng, &LEVELS);
            let every = [DefaultsRollout::Auto, DefaultsRollout::Now, DefaultsRollout::Staged, DefaultsRollout::Hold];
            let (rollout, between) = (pick(rng, &every), Duration::from_millis(rng.u64(..20_000)));
            upgrade(w, level, rollout, replicas, between).await;
            format!("upgrade to {level} with {rollout:?}")
        }
        5..7 => {
            approve(w).await;
            "alice approves".to_owned()
        }
        _ => disturb(w, rng).await,
    }
}

/// Runs one seed.
fn simulate(seed: Option<u64>) -> Run {
    let told = RefCell::new(Run::default());
    play(scenario(), async |w| {
        let mut rng = Rng::with_seed(seed.unwrap_or_default());
        let replicas: Vec<String> =
            if seed.is_some_and(|seed| seed % 3 == 1) { (0..2).map(user).collect() } else { vec![] };
        w.bring(std::slice::from_ref(&POLICIES[LEVELS[0]]), DefaultsRollout::Auto);
        if replicas.is_empty() {
            w.spawn();
        }
        for replica in &replicas {
            w.spawn_replica(replica);
        }
        for server in SERVERS {
            w.apply(&mcp_server(server)).await;
        }
        pass(w, Duration::from_mins(2), &replicas).await;
        let mut trace = Vec::new();
        let steps = if seed.is_some() { rng.usize(6..20) } else { 0 };
        for _ in 0..steps {
            if rng.u8(..3) == 0 {
                let (writes, after) = (rng.u32(..10), rng.bool());
                w.crash_point.plan(writes, after);
                trace.push(format!("the operator is to end at its write {writes} from now, after its effect: {after}"));
            }
            trace.push(act(w, &mut rng, &replicas).await);
            let seconds = rng.u64(..60);
            pass(w, Duration::from_secs(seconds), &replicas).await;
        }
        restore(w).await;
        upgrade(w, LAST, DefaultsRollout::Now, &replicas, Duration::from_secs(20)).await;
        let (state, mut wrong) = end(w, &replicas).await;
        let served = with_level(w, LAST).await;
        if served.len() != SERVERS.len() {
            wrong.push(format!("the last default policy serves only these servers: {served:?}"));
        }
        *told.borrow_mut() = Run { trace, state, wrong };
    });
    told.into_inner()
}

#[test]
fn the_default_policy_of_the_last_version_serves_everywhere_whatever_happened_to_earlier_upgrades() {
    run_seeds(SEEDS, SHARE, simulate);
}
