//! Ends the operator at each of its writes: in one run before the write takes effect, and in another run after it.
//! After a restart, the cluster must contain the same objects as after an uninterrupted run.

use std::cell::RefCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use kaos_tests::gadget::gadget;
use kaos_tests::harness::samples::{agent, config_map, mcp_server, model_api};
use kaos_tests::harness::{Scenario, World, play};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::check::{self, State};

/// The write at which the operator ends.
#[derive(Debug, Clone, Copy)]
struct End {
    /// The number of writes that the operator sends before the write at which it ends.
    writes: u32,
    /// Whether the write takes effect.
    after: bool,
}

/// The result of a run.
#[derive(Debug, Default)]
struct RunOutcome {
    state: State,
    wrong: Vec<String>,
    /// Whether the operator ended at the planned write. False if the operator sent fewer writes in this run.
    ended: bool,
}

/// Returns the steps of the story, which the test repeats for each write. The steps create, change and delete objects
/// of all kinds, with children of all types. Some of the objects wait for other objects.
fn story() -> [Vec<Change>; 4] {
    let boss = |more: &Value| Change::Apply(agent("boss", "llm", more));
    let web = |spec: &Value| Change::Apply(gadget("web", spec));
    [
        vec![
            boss(&json!({"mcpServers": ["echo"], "agentNetwork": {"access": ["worker"]}})),
            web(&json!({"config": {"a": "1"}, "secret": {"k": "1"}, "chain": "first"})),
            Change::Apply(agent("worker", "llm", &json!({"mcpServers": [], "agentNetwork": {"access": []}}))),
            Change::Apply(model_api("llm")),
            Change::Apply(mcp_server("echo")),
        ],
        vec![
            Change::Apply(config_map("first", &json!({"next": "second"}))),
            Change::Apply(config_map("second", &json!({"value": "1"}))),
        ],
        vec![
            boss(
                &json!({"mcpServers": ["echo"], "config": {"instructions": "be brief"}, "agentNetwork": {"expose": false}}),
            ),
            web(&json!({"config": {"a": "2"}, "leaveOut": ["Service", "Secret"], "chain": "first"})),
            Change::Delete("Deployment/modelapi-llm"),
        ],
        vec![Change::Delete("Agent/worker"), Change::Delete("MCPServer/echo"), Change::Apply(mcp_server("echo"))],
    ]
}

enum Change {
    Apply(Value),
    Delete(&'static str),
}

impl Change {
    async fn make(&self, w: &World) {
        match self {
            Self::Apply(object) => drop(w.apply(object).await),
            Self::Delete(at) => w.delete(at).await,
        }
    }
}

/// Waits for this time. Meanwhile, if the operator ends, starts another operator.
async fn pass(w: &World, time: Duration) {
    let until = Instant::now() + time;
    while let Ok(user) = timeout(until.saturating_duration_since(Instant::now()), w.crash_point.reached()).await {
        w.crash_one(&user).await;
        w.spawn();
    }
}

/// Runs the story. If `end` names a write, ends the operator once, at this write.
fn run(end: Option<End>) -> RunOutcome {
    let told = RefCell::new(RunOutcome::default());
    play(Scenario::embedded("the test ends the operator at each write").idle(), async |w| {
        if let Some(end) = end {
            w.crash_point.plan(end.writes, end.after);
        }
        w.spawn();
        for changes in story() {
            for change in changes {
                change.make(w).await;
            }
            pass(w, Duration::from_mins(1)).await;
        }
        // Wait for the longest backoff.
        pass(w, Duration::from_mins(15)).await;
        let mut wrong = check::strays(w).await;
        let state = State::of(w).await;
        w.forget_requests();
        pass(w, Duration::from_mins(10)).await;
        wrong.extend(check::noise(w));
        let ended = end.is_some() && !w.crash_point.is_planned();
        *told.borrow_mut() = RunOutcome { state, wrong, ended };
    });
    told.into_inner()
}

#[test]
fn an_operator_that_ends_at_any_write_leaves_nothing_undone() {
    let wanted = run(None);
    assert!(wanted.wrong.is_empty(), "in the uninterrupted run: {:#?}", wanted.wrong);
    let (next, is_over, failed) = (AtomicU32::new(0), AtomicBool::new(false), Mutex::new(Vec::new()));
    let worker = || {
        while !is_over.load(Ordering::Relaxed) {
            let writes = next.fetch_add(1, Ordering::Relaxed);
            for after in [false, true] {
                let end = End { writes, after };
                let mut told = run(Some(end));
                if !told.ended {
                    is_over.store(true, Ordering::Relaxed);
                    return;
                }
                told.wrong.extend(check::differences(&told.state, &wanted.state));
                if !told.wrong.is_empty() {
                    failed.lock().unwrap().push(format!("--- {end:?}\n{}", told.wrong.join("\n")));
                }
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(worker))));
    let failed = failed.into_inner().unwrap();
    let writes = next.into_inner();
    println!("the operator ended at each of about {writes} writes, before and after its effect");
    assert!(writes > 20, "the story has only {writes} writes");
    assert!(failed.is_empty(), "{}\n{} ends are wrong", failed[..failed.len().min(3)].join("\n"), failed.len());
}
