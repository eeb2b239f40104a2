//! Tests rollouts while the operator crashes. Users install settings in steps, steer the rollouts, and edit and replace
//! MCPServers. Pods fail and crash, and the operator ends at random writes. In every case, the last installed settings
//! must serve everywhere at the end. Two further tests end the operator at each of its writes, one during a rollout
//! that completes, and the other during a rollout that returns.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use kaos_cluster::PodFate;
use kaos_tests::harness::kinds::Kind;
use kaos_tests::harness::read::{name, text};
use kaos_tests::harness::replicas::user;
use kaos_tests::harness::samples::mcp_server;
use kaos_tests::harness::whims::pick;
use kaos_tests::harness::{Scenario, World, play};
use kaos_tests::shipped;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::check::{self, State};
use crate::number;

pub(crate) const SERVERS: [&str; 5] = ["a", "b", "c", "d", "e"];
/// The names of the package's ConfigMap: users sometimes rename the package.
const NAMES: [&str; 2] = ["levels", "levels-renamed"];
const STAGED: &str = "rollout: {mode: staged, steps: [1, 100%], pause: 30s, patience: 30s}";
/// The number of seeds in CI.
const SEEDS: u64 = 12;

fn scenario() -> Scenario {
    Scenario::embedded("the test ends the operator during rollouts").installing(false).idle()
}

/// Returns settings for all MCPServers.
fn levels(name: &str, level: &str, rollout: &str) -> Value {
    let file = format!("name: mcpserver\nsettings: {{logLevel: {level}}}\n{rollout}\n");
    shipped::package(name, None, &file).unwrap()
}

fn ready(seconds: u64) -> PodFate {
    PodFate::ReadyAfter(Duration::from_secs(seconds))
}

/// Creates the MCPServers, and installs the first settings without steps.
async fn begin(w: &World) {
    for server in SERVERS {
        w.apply(&mcp_server(server)).await;
    }
    w.apply(&levels(NAMES[0], "ERROR", "")).await;
    pass(w, Duration::from_mins(2), &[]).await;
}

/// Returns the MCPServers whose pods have this log level.
pub(crate) async fn with_level(w: &World, level: &str) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    for server in SERVERS {
        let template = w.look(&format!("Deployment/mcpserver-{server}")).await["spec"]["template"].to_string();
        if template.contains(&format!(r#""LOG_LEVEL","value":"{level}""#)) {
            found.insert(server);
        }
    }
    found
}

/// Waits for this time. If the operator ends, starts another operator.
pub(crate) async fn pass(w: &World, time: Duration, replicas: &[String]) {
    let until = Instant::now() + time;
    while let Ok(user) = timeout(until.saturating_duration_since(Instant::now()), w.crash_point.reached()).await {
        w.crash_one(&user).await;
        if replicas.is_empty() { w.spawn() } else { w.spawn_replica(&user) }
    }
}

pub(crate) async fn revisions(w: &World) -> Vec<Value> {
    w.list_in(Kind::named("PolicyRevision"), "kaos-system").await
}

/// Returns a message for each wrong state of a revision. Exactly one revision must be active, and all other revisions
/// must be superseded or in quarantine.
async fn wrong_revisions(w: &World) -> Vec<String> {
    let mut active = 0;
    let mut wrong = Vec::new();
    for revision in revisions(w).await {
        match text(&revision["status"]["state"]) {
            "Active" => active += 1,
            "Superseded" | "Quarantined" => {}
            state => wrong.push(format!("PolicyRevision {} is {state}: {}", name(&revision), revision["status"])),
        }
    }
    if active != 1 {
        wrong.push(format!("{active} revisions are active"));
    }
    wrong
}

/// Waits until the operator should be idle. Returns the final state, and a message for each mistake. A request of the
/// idle operator counts as a mistake, too.
pub(crate) async fn end(w: &World, replicas: &[String]) -> (State, Vec<String>) {
    pass(w, Duration::from_mins(15), replicas).await;
    let mut wrong = check::strays(w).await;
    wrong.extend(wrong_revisions(w).await);
    let state = State::of(w).await;
    w.forget_requests();
    pass(w, Duration::from_mins(10), replicas).await;
    wrong.extend(check::noise(w));
    (state, wrong)
}

/// If a rollout has not ended yet, steers this rollout as a user. `verb` is the request, such as `promote`.
async fn steer(w: &World, verb: &str) {
    for revision in revisions(w).await {
        let rollout = &revision["status"]["rollout"];
        if revision["status"]["state"] != "Active" || rollout.is_null() || !rollout["ended"].is_null() {
            continue;
        }
        let request = format!("{}/{}", text(&rollout["started"]), rollout["requests"].as_i64().unwrap_or_default() + 1);
        let annotations =
            json!({"kaos.tools/rollout": verb, "kaos.tools/rollout-by": "alice", "kaos.tools/rollout-for": request});
        let at = format!("kaos-system:PolicyRevision/{}", name(&revision));
        drop(w.try_patch(&at, &json!({"metadata": {"annotations": annotations}})).await);
    }
}

/// Performs one random action of a user, or of the cluster.
async fn act(w: &World, rng: &mut Rng) -> String {
    match rng.u8(..15) {
        0..4 => {
            let mode = if rng.u8(..4) == 0 { "now" } else { "staged" };
            let by = pick(rng, &["object", "namespace"]);
            let most = pick(rng, &["1", "50%", "100%"]);
            let (pause, patience, level) = (rng.u8(30..60), rng.u8(10..60), pick(rng, &["DEBUG", "WARNING", "INFO"]));
            let rollout = format!(
                "rollout: {{mode: {mode}, by: {by}, steps: [1, 50%, 100%], pause: {pause}s, patience: {patience}s, \
                 maxUnavailable: {most}}}"
            );
            drop(w.try_apply(&levels(NAMES[0], level, &rollout)).await);
            format!("install {level} with {rollout}")
        }
        4 => {
            // Rename the package like a tool that gives each content another name: create the new ConfigMap, and then
            // delete the old ConfigMap.
            let (old, new) = if rng.bool() { (NAMES[0], NAMES[1]) } else { (NAMES[1], NAMES[0]) };
            let level = pick(rng, &["DEBUG", "WARNING"]);
            drop(w.try_apply(&levels(new, level, STAGED)).await);
            let between = rng.u64(..20_000);
            w.pass_time(Duration::from_millis(between)).await;
            w.delete(&format!("kaos-system:ConfigMap/{old}")).await;
            format!("rename {old} to {new} with {level}")
        }
        5 => {
            let at = format!("kaos-system:ConfigMap/{}", pick(rng, &NAMES));
            w.delete(&at).await;
            format!("delete {at}")
        }
        _ => disturb(w, rng).await,
    }
}

/// Disturbs the rollouts of installed packages and of default policies. Either a user steers a rollout, deletes a
/// PolicyRevision or changes MCPServers, or pods fail.
pub(crate) async fn disturb(w: &World, rng: &mut Rng) -> String {
    let fate = |rng: &mut Rng| match rng.u8(..4) {
        0 => PodFate::NotReady,
        1 => PodFate::CrashLoop,
        _ => ready(rng.u64(..15)),
    };
    match rng.u8(..9) {
        0..3 => {
            let verb = pick(rng, &["pause", "resume", "promote", "return"]);
            steer(w, verb).await;
            format!("alice steers: {verb}")
        }
        3 => {
            // Delete the PolicyRevision, but keep the ConfigMap with the stored bytes: on a real cluster, the operator
            // reads these bytes before the garbage collector deletes the ConfigMap.
            let serves = |it: &Value| matches!(text(&it["status"]["state"]), "Active" | "Yielding");
            let serving: Vec<Value> = revisions(w).await.into_iter().filter(serves).collect();
            let Some(revision) = serving.get(rng.usize(..serving.len().max(1))) else { return "nothing".to_owned() };
            w.orphan(&format!("kaos-system:PolicyRevision/{}", name(revision))).await;
            format!("delete the record of {}", name(revision))
        }
        4 => {
            let fate = fate(rng);
            w.pods(fate);
            format!("all pods: {fate:?}")
        }
        5 => {
            // Break the spec. The function `restore` repairs the spec at the end of the run.
            let server = pick(rng, &SERVERS);
            let mut edited = mcp_server(server);
            edited["spec"]["params"] = json!("def broken(");
            drop(w.try_apply(&edited).await);
            format!("edit {server}")
        }
        6 => {
            let server = pick(rng, &SERVERS);
            drop(w.try_delete(&format!("MCPServer/{server}")).await);
            let between = rng.u64(..5_000);
            w.pass_time(Duration::from_millis(between)).await;
            drop(w.try_apply(&mcp_server(server)).await);
            format!("replace {server}")
        }
        _ => {
            let (server, fate) = (pick(rng, &SERVERS), fate(rng));
            w.pods_of(&format!("mcpserver-{server}"), fate);
            format!("pods of {server}: {fate:?}")
        }
    }
}

/// Ends the disturbances: restores the MCPServers, and lets their pods become ready.
pub(crate) async fn restore(w: &World) {
    w.crash_point.clear();
    w.pods(ready(1));
    for server in SERVERS {
        w.pods_of(&format!("mcpserver-{server}"), ready(1));
        w.apply(&mcp_server(server)).await;
    }
}

/// The result of a run.
#[derive(Default)]
pub(crate) struct Run {
    /// The actions of the run, in their order.
    pub(crate) trace: Vec<String>,
    pub(crate) state: State,
    /// A message for each mistake.
    pub(crate) wrong: Vec<String>,
}

/// Runs one seed.
fn simulate(seed: Option<u64>) -> Run {
    let told = RefCell::new(Run::default());
    play(scenario(), async |w| {
        let mut rng = Rng::with_seed(seed.unwrap_or_default());
        let replicas: Vec<String> =
            if seed.is_some_and(|seed| seed % 4 == 1) { (0..2).map(user).collect() } else { vec![] };
        if replicas.is_empty() {
            w.spawn();
        }
        for replica in &replicas {
            w.spawn_replica(replica);
        }
        begin(w).await;
        let mut trace = Vec::new();
        let steps = if seed.is_some() { rng.usize(6..20) } else { 0 };
        for _ in 0..steps {
            if rng.u8(..3) == 0 {
                let (writes, after) = (rng.u32(..10), rng.bool());
                w.crash_point.plan(writes, after);
                trace.push(format!("the operator is to end at its write {writes} from now, after its effect: {after}"));
            }
            trace.push(act(w, &mut rng).await);
            let seconds = rng.u64(..60);
            pass(w, Duration::from_secs(seconds), &replicas).await;
        }
        restore(w).await;
        w.delete(&format!("kaos-system:ConfigMap/{}", NAMES[1])).await;
        // No seed installs settings with this level, so these settings cannot be in quarantine.
        w.apply(&levels(NAMES[0], "CRITICAL", "rollout: {mode: now}")).await;
        let (state, mut wrong) = end(w, &replicas).await;
        let served = with_level(w, "CRITICAL").await;
        if served.len() != SERVERS.len() {
            wrong.push(format!("only these servers have the last level: {served:?}"));
        }
        *told.borrow_mut() = Run { trace, state, wrong };
    });
    told.into_inner()
}

/// Runs the seeds of a simulation, and compares the final state of each run with the final state of a run without
/// faults. If `KAOS_SEEDS` is set, the number of seeds is this value divided by `share`.
pub(crate) fn run_seeds(seeds: u64, share: u64, simulate: impl Fn(Option<u64>) -> Run + Sync) {
    let wanted = simulate(None);
    assert!(wanted.wrong.is_empty(), "without faults: {:#?}", wanted.wrong);
    let failure = |seed: u64| {
        let told = catch_unwind(AssertUnwindSafe(|| simulate(Some(seed))));
        let Ok(Run { trace, state, mut wrong }) = told else {
            return Some(format!("=== seed {seed}: a panic, printed above"));
        };
        wrong.extend(check::differences(&state, &wanted.state));
        let report = format!(
            "=== seed {seed}: replay it with KAOS_SEED={seed} tests/run simulate\n{}\n---\n{}",
            trace.join("\n"),
            wrong.join("\n")
        );
        (!wrong.is_empty()).then_some(report)
    };
    if let Some(seed) = number("KAOS_SEED") {
        assert_eq!(failure(seed), None);
        return;
    }
    let (first, all) = (number("KAOS_FIRST_SEED").unwrap_or(0), number("KAOS_SEEDS").map(|all| all.div_ceil(share)));
    let (next, end) = (AtomicU64::new(first), first + all.unwrap_or(seeds));
    let failed = Mutex::new(Vec::new());
    let worker = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end {
                return;
            }
            failed.lock().unwrap().extend(failure(seed));
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(worker))));
    let failed = failed.into_inner().unwrap();
    let shown = failed[..failed.len().min(3)].join("\n");
    assert!(failed.is_empty(), "{shown}\n{} of {} seeds fail", failed.len(), end - first);
}

#[test]
fn the_last_settings_serve_everywhere_whatever_happened_to_earlier_rollouts() {
    run_seeds(SEEDS, 1, simulate);
}

/// Runs a rollout. Ends the operator once, at the write `at`, either before or after the write takes effect. Returns
/// the state at the end, a message for each mistake, and whether the operator ended.
fn story(returns: bool, at: Option<(u32, bool)>) -> (State, Vec<String>, bool) {
    let told = RefCell::new((State::default(), Vec::new(), false));
    play(scenario(), async |w| {
        w.spawn();
        begin(w).await;
        if let Some((writes, after)) = at {
            w.crash_point.plan(writes, after);
        }
        w.apply(&levels(NAMES[0], "DEBUG", STAGED)).await;
        let mut moved = BTreeSet::new();
        while returns && moved.is_empty() {
            pass(w, Duration::from_secs(1), &[]).await;
            moved = with_level(w, "DEBUG").await;
        }
        for server in &moved {
            w.pods_of(&format!("mcpserver-{server}"), PodFate::NotReady);
        }
        pass(w, Duration::from_mins(5), &[]).await;
        for server in &moved {
            w.pods_of(&format!("mcpserver-{server}"), ready(1));
        }
        let (state, mut wrong) = end(w, &[]).await;
        let served = with_level(w, if returns { "ERROR" } else { "DEBUG" }).await;
        if served.len() != SERVERS.len() {
            wrong.push(format!("only these servers have the level that must serve: {served:?}"));
        }
        let ended = at.is_some() && !w.crash_point.is_planned();
        *told.borrow_mut() = (state, wrong, ended);
    });
    told.into_inner()
}

/// Ends the operator at each write of a rollout, with a new run for each write.
fn sweep(returns: bool) {
    let (wanted, wrong, _) = story(returns, None);
    assert!(wrong.is_empty(), "in the uninterrupted run: {wrong:#?}");
    let (next, last, failed) = (AtomicU32::new(0), AtomicU32::new(u32::MAX), Mutex::new(Vec::new()));
    let worker = || {
        loop {
            let writes = next.fetch_add(1, Ordering::Relaxed);
            if writes >= last.load(Ordering::Relaxed) {
                return;
            }
            for after in [false, true] {
                let (state, mut wrong, ended) = story(returns, Some((writes, after)));
                if !ended {
                    last.fetch_min(writes, Ordering::Relaxed);
                    return;
                }
                wrong.extend(check::differences(&state, &wanted));
                if !wrong.is_empty() {
                    let told = format!("--- write {writes}, after its effect: {after}\n{}", wrong.join("\n"));
                    failed.lock().unwrap().push(told);
                }
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(worker))));
    let failed = failed.into_inner().unwrap();
    println!("the operator ended at each of {} writes", last.load(Ordering::Relaxed));
    assert!(last.into_inner() > 10, "the rollout has too few writes");
    assert!(failed.is_empty(), "{}\n{} ends are wrong", failed[..failed.len().min(3)].join("\n"), failed.len());
}

#[test]
fn an_operator_that_ends_at_any_write_of_a_rollout_arrives() {
    sweep(false);
}

#[test]
fn an_operator_that_ends_at_any_write_of_a_return_returns() {
    sweep(true);
}
