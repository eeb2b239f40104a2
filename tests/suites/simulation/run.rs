//! Runs one seed from start to end.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use fastrand::Rng;
use kaos_cluster::faults::NoFaults;
use kaos_tests::harness::faults::OPERATOR;
use kaos_tests::harness::read::uid;
use kaos_tests::harness::replicas::user;
use kaos_tests::harness::samples::config_map;
use kaos_tests::harness::{Scenario, World, play};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::actors::{Ending, act};
use crate::check::{self, State};
use crate::hits::Hits;
use crate::trouble::{Cut, Trouble};

/// The result of a run.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// The events of the run, with their simulated times.
    pub(crate) trace: Vec<String>,
    /// Every request of every user.
    pub(crate) journal: Vec<String>,
    /// The number of steps that the seed determines.
    pub(crate) steps: usize,
    /// The differences between the final state and the wanted state.
    pub(crate) wrong: Vec<String>,
}

impl Ended {
    /// Returns the last requests of the operator, without watches.
    pub(crate) fn last_requests(&self, count: usize) -> Vec<String> {
        let told = |entry: &&String| entry.contains(OPERATOR) && !entry.contains("Z watch ");
        let of_operator: Vec<&String> = self.journal.iter().filter(told).collect();
        of_operator.iter().rev().take(count).rev().map(|entry| entry.replace(OPERATOR, "the operator")).collect()
    }
}

fn scenario(seed: u64) -> Scenario {
    let scenario = Scenario::embedded("everything is simulated").idle();
    // Most seeds use policies as native code, which is faster than components.
    if seed % 8 == 6 { scenario.components() } else { scenario }
}

/// Runs one seed, but leaves out the steps whose numbers are in `without`. `hits` counts the faults.
pub(crate) fn simulate(seed: u64, without: &BTreeSet<usize>, hits: &Hits) -> Ended {
    let shared = Rc::new(RefCell::new(Ended::default()));
    let ending = Ending::draw(&mut Rng::with_seed(seed ^ 0xe4d));
    let told = catch_unwind(AssertUnwindSafe(|| {
        let scenario = scenario(seed).seeded(seed);
        // For some seeds, the operator uses streaming lists.
        let scenario = scenario.tuned(|options| {
            options.streaming_lists = (options.seed / 16).is_multiple_of(2);
            options.proofs = (options.seed / 4).is_multiple_of(2);
        });
        play(scenario, async |w| {
            let mut run = Run {
                w,
                rng: Rng::with_seed(seed),
                hits: hits.clone(),
                ended: Rc::clone(&shared),
                start: Instant::now(),
                replicas: if (seed / 4) % 4 == 1 { (0..2).map(user).collect() } else { Vec::new() },
                cut: Cut::default(),
            };
            let wrong = run.live(seed, &ending, without).await;
            run.ended.borrow_mut().wrong.extend(wrong);
            run.note_journal();
        });
    }));
    let mut ended = shared.take();
    if let Err(panic) = told {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        ended.wrong.push(format!("it panicked: {}", text.unwrap_or_default()));
    }
    ended
}

struct Run<'w> {
    w: &'w World,
    /// The random generator of the current step.
    rng: Rng,
    hits: Hits,
    ended: Rc<RefCell<Ended>>,
    start: Instant,
    /// The replicas, which share a Lease. Empty if the run has a single operator without leader election.
    replicas: Vec<String>,
    cut: Cut,
}

impl Run<'_> {
    fn spawn(&self) {
        if self.replicas.is_empty() {
            self.w.spawn();
        }
        for replica in &self.replicas {
            self.w.spawn_replica(replica);
        }
    }

    fn note(&self, what: impl AsRef<str>) {
        let at = self.start.elapsed().as_millis();
        let line = format!("{:>4}.{:03} {}", at / 1000, at % 1000, what.as_ref());
        self.ended.borrow_mut().trace.push(line);
    }

    fn note_journal(&self) {
        let entries = self.w.embedded().journal().entries();
        let mut ended = self.ended.borrow_mut();
        if !self.replicas.is_empty() {
            ended.wrong.extend(check::second_writers(&entries));
        }
        ended.journal.extend(entries.iter().map(|entry| format!("{} {entry}", entry.at)));
    }

    async fn live(&mut self, seed: u64, ending: &Ending, without: &BTreeSet<usize>) -> Vec<String> {
        let strangers = self.strangers().await;
        let trouble = Trouble::of(seed);
        self.note(format!("{trouble:?}"));
        self.w.embedded().set_faults(trouble.plan(&self.cut, &self.hits));
        let namespace = uid(&self.w.look(&self.namespace()).await).to_owned();
        self.spawn();
        let steps = self.rng.usize(8..30);
        self.ended.borrow_mut().steps = steps;
        for step in (0..steps).filter(|step| !without.contains(step)) {
            // Give each step its own random generator: then a step makes the same choices in a run that leaves out
            // other steps.
            self.rng = Rng::with_seed(seed.wrapping_mul(1_000).wrapping_add(step as u64));
            self.step().await;
        }
        self.w.crash_point.clear();
        self.w.embedded().set_faults(NoFaults);
        self.note("nothing goes wrong any more, and everything is put in order");
        if let Err(why) = ending.bring_about(self.w).await {
            return vec![why];
        }
        // Wait for the longest backoff. If the faults dropped watch events, wait until the operator has listed all
        // objects again.
        let quiet = if trouble.loses_events() { Duration::from_hours(7) } else { Duration::from_mins(15) };
        self.pass(quiet).await;
        self.note("it should be quiet");
        let mut wrong = check::differences(&State::of(self.w).await, &fault_free(seed, ending));
        wrong.extend(check::strays(self.w).await);
        // Skip this check if a user deleted the namespace, because this also deleted the objects of other clients.
        let gone = uid(&self.w.look(&self.namespace()).await) != namespace;
        for (at, version) in strangers.iter().filter(|_| !gone) {
            let now = self.w.look(at).await["metadata"]["resourceVersion"].clone();
            if now != *version {
                wrong.push(format!("the operator changed {at}, which belongs to another client"));
            }
        }
        self.note_journal();
        self.w.forget_requests();
        self.pass(Duration::from_mins(10)).await;
        wrong.extend(check::noise(self.w));
        wrong
    }

    /// Creates objects that look like the operator's children, but belong to another client. Returns the key and the
    /// resource version of each object.
    async fn strangers(&self) -> Vec<(String, Value)> {
        let mut strangers = Vec::new();
        for (name, more) in [
            ("plain", json!({})),
            ("labelled", json!({"labels": {"app.kubernetes.io/managed-by": "kaos-operator"}})),
            (
                "alike",
                json!({"labels": {"app.kubernetes.io/managed-by": "kaos-operator"},
                    "annotations": {"kaos.tools/applied-digest": "sha256:0"}}),
            ),
        ] {
            let mut map = config_map(&format!("stranger-{name}"), &json!({"a": "b"}));
            map["metadata"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let version = self.w.apply(&map).await["metadata"]["resourceVersion"].clone();
            strangers.push((format!("ConfigMap/stranger-{name}"), version));
        }
        strangers
    }

    async fn step(&mut self) {
        match self.rng.u8(..30) {
            0 => {
                self.note("the operator is stopped and started");
                self.w.stop_all().await;
                self.spawn();
            }
            1 => {
                self.note("the operator is gone for a while");
                self.w.crash().await;
                let away = self.rng.usize(1..6);
                for _ in 0..away {
                    let did = act(self.w, &mut self.rng).await;
                    self.note(did);
                }
                self.spawn();
            }
            5..9 if !self.replicas.is_empty() => self.unsettle_leader().await,
            2..5 => {
                let (writes, after) = (self.rng.u32(..12), self.rng.bool());
                let when = if after { "after" } else { "before" };
                self.note(format!("the operator is to crash {when} the effect of its write {writes} from now"));
                self.w.crash_point.plan(writes, after);
            }
            _ => {
                let did = act(self.w, &mut self.rng).await;
                self.note(did);
            }
        }
        // Half of the steps do not wait. The other steps wait for up to 0.3, 5 or 60 seconds, so that a step can begin
        // before, during or after a pass.
        let time = match self.rng.u8(..6) {
            0..3 => 0,
            3 => self.rng.u64(..300),
            4 => self.rng.u64(..5_000),
            _ => self.rng.u64(..60_000),
        };
        self.pass(Duration::from_millis(time)).await;
    }

    /// Makes a random fault hit the leading replica.
    async fn unsettle_leader(&mut self) {
        let Some(leader) = self.w.leader().await else { return };
        if self.rng.bool() {
            self.note(format!("{leader}, which leads, crashes, and another starts"));
            self.w.crash_one(&leader).await;
            self.w.spawn_replica(&leader);
        } else {
            let (hangs, seconds) = (self.rng.bool(), self.rng.u64(1..40));
            let how = if hangs { "without an answer" } else { "with errors" };
            self.note(format!("{leader}, which leads, is cut off {how} for {seconds} s"));
            self.cut.off(leader, hangs);
            self.pass(Duration::from_secs(seconds)).await;
            self.cut.mend();
        }
    }

    fn namespace(&self) -> String {
        format!("Namespace/{}", self.w.namespace)
    }

    /// Waits for this time. Meanwhile, if an operator crashes or loses the Lease, starts another operator.
    async fn pass(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while let Ok(user) = timeout(end.saturating_duration_since(Instant::now()), self.w.crash_point.reached()).await
        {
            self.note(format!("{user} ends, and another starts"));
            self.hits.crash();
            self.w.crash_one(&user).await;
            let pause = self.rng.u64(..2_000);
            tokio::time::sleep(Duration::from_millis(pause)).await;
            if self.replicas.is_empty() { self.w.spawn() } else { self.w.spawn_replica(&user) }
        }
    }
}

/// Returns the final state of a run without faults.
fn fault_free(seed: u64, ending: &Ending) -> State {
    let state = RefCell::new(State::default());
    let scenario = scenario(seed);
    std::thread::scope(|scope| {
        // Use a separate thread, because an async runtime cannot start inside another one.
        let run = scope.spawn(|| {
            let state = RefCell::new(State::default());
            play(scenario, async |w| {
                w.spawn();
                ending.bring_about(w).await.unwrap();
                w.pass_time(Duration::from_mins(5)).await;
                let end = State::of(w).await;
                *state.borrow_mut() = end;
            });
            state.into_inner()
        });
        *state.borrow_mut() = run.join().unwrap();
    });
    state.into_inner()
}
