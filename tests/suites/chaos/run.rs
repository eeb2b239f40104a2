//! Runs one seed from start to end.

use std::time::Duration;

use fastrand::Rng;
use kaos_tests::control_plane::chart::{self, Account};
use kaos_tests::control_plane::{ControlPlane, access};
use kaos_tests::harness::samples::namespace;
use kaos_tests::harness::state::{State, differences, strays};
use kaos_tests::harness::{World, is_ready};
use serde_json::Value;
use tokio::time::Instant;

use crate::actors::{self, Ending, act};
use crate::disasters::{self, Disaster, deck, happen};
use crate::keeper::Keeper;
use crate::proxy::Proxy;

/// The time limit for the operator's recovery after the faults.
///
/// This limit is longer than the operator's longest backoff, even on a slow machine.
const PATIENCE: Duration = Duration::from_mins(3);
/// The time at the end of a run during which the operator must send no requests.
const SILENCE: Duration = Duration::from_secs(10);
const BEAT: Duration = Duration::from_millis(500);

/// The result of a run with one seed.
pub(crate) struct Ended {
    pub(crate) summary: String,
    /// The events of the run, with their times.
    pub(crate) trace: Vec<String>,
    /// The differences between the final state and the wanted state.
    pub(crate) wrong: Vec<String>,
}

struct Run<'c> {
    cluster: &'c ControlPlane,
    w: World,
    account: Account,
    proxy: Proxy,
    keeper: Keeper<'c>,
    rng: Rng,
    begin: Instant,
    trace: Vec<String>,
    edits: usize,
    disasters: Vec<Disaster>,
}

/// Runs one seed.
pub(crate) async fn chaos(seed: u64, time: Duration) -> Ended {
    let cluster = ControlPlane::start().unwrap();
    let client = cluster.client().await.unwrap();
    let world = World::over(client.clone(), "chaos");
    for name in ["chaos", "kaos-system"] {
        world.apply(&namespace(name)).await;
    }
    let account = chart::install(&client, &chart::manifests()).await.unwrap();
    let target = cluster.url().trim_start_matches("https://").parse().unwrap();
    let (proxy, kubeconfig) = (Proxy::to(target, seed), cluster.folder().join("chaos.kubeconfig"));
    let (token, way) = (account.token(&client).await.unwrap(), format!("https://{}", proxy.address));
    access::with_token(&cluster.kubeconfig(), &token, Some(&way), &kubeconfig).unwrap();
    let pod = chart::pod(&chart::manifests()).unwrap().unwrap();
    let keeper = Keeper::new(&cluster, pod, kubeconfig);
    let rng = Rng::with_seed(seed);
    let run = Run {
        cluster: &cluster,
        w: world,
        account,
        proxy,
        keeper,
        rng,
        begin: Instant::now(),
        trace: Vec::new(),
        edits: 0,
        disasters: Vec::new(),
    };
    run.live(seed, time).await
}

impl Run<'_> {
    fn note(&mut self, what: impl AsRef<str>) {
        let at = self.begin.elapsed().as_millis();
        self.trace.push(format!("{:>4}.{:03} {}", at / 1000, at % 1000, what.as_ref()));
    }

    async fn live(mut self, seed: u64, time: Duration) -> Ended {
        let ending = Ending::draw(&mut Rng::with_seed(seed ^ 0xe4d));
        let strangers = actors::strangers(&self.w).await;
        self.keeper.start(&mut self.rng);
        let wanted = self.without_faults(&ending).await;
        self.note("things go wrong");
        self.storm(time).await;
        self.note("nothing goes wrong any more, and everything is put in order");
        let calm = Instant::now();
        ending.ask_for(&self.w).await;
        let mut wrong = self.settle(&wanted).await;
        let settled = calm.elapsed();
        wrong.extend(self.untouched(&strangers).await);
        wrong.extend(strays(&self.w).await);
        wrong.extend(self.noise().await);
        wrong.append(&mut self.keeper.wrong);
        let counts = self.proxy.counts();
        let summary = format!(
            "seed {seed}: {} edits and {} disasters in {} s {:?}\nthe operator was started {} times, and ended {} \
             times by itself\n{} connections: {} refused, {} reset, {} stalled, {} slow\nin order {:.1} s after the \
             end of it, with {} objects",
            self.edits,
            self.disasters.len(),
            time.as_secs(),
            self.disasters,
            self.keeper.started,
            self.keeper.ended,
            counts.connections,
            counts.refused,
            counts.reset,
            counts.stalled,
            counts.slow,
            settled.as_secs_f64(),
            ending.names().len(),
        );
        if !wrong.is_empty() {
            self.note(format!("logs are in {}", self.cluster.folder().display()));
        }
        self.keeper.stop();
        Ended { summary, trace: self.trace, wrong }
    }

    /// Returns the state of the cluster after a run without faults.
    async fn without_faults(&mut self, ending: &Ending) -> State {
        ending.ask_for(&self.w).await;
        let names = ending.names();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.w.until_all("all objects are ready", &names, |all| all.iter().all(is_ready)).await;
        self.w.quiet().await;
        let state = State::of(&self.w).await;
        ending.take_away(&self.w).await;
        state
    }

    /// Alternates disasters and edits. Every kind of disaster happens at least once.
    async fn storm(&mut self, time: Duration) {
        let begin = Instant::now();
        let mut deck = deck(&mut self.rng);
        self.proxy.trouble(true);
        while begin.elapsed() < time || !deck.is_empty() {
            for _ in 0..self.rng.usize(1..5) {
                self.edit().await;
                let pause = Duration::from_millis(if self.rng.bool() { 0 } else { self.rng.u64(..1500) });
                self.keeper.pass(pause, &mut self.rng).await;
            }
            let disaster = deck.pop();
            let disaster = disaster.unwrap_or_else(|| self.another());
            self.note(format!("{disaster:?}"));
            self.disasters.push(disaster);
            let cluster = (self.cluster, &self.w);
            happen(disaster, cluster, &self.proxy, &mut self.keeper, &mut self.rng).await;
            if disaster == Disaster::KillAndStay {
                for _ in 0..self.rng.usize(1..5) {
                    self.edit().await;
                }
                self.keeper.start(&mut self.rng);
            }
        }
        self.proxy.trouble(false);
        self.proxy.cut();
        // Restart the cluster's own controllers, because this test does not check how they recover. If a user deleted
        // and recreated an object while the garbage collector could not watch, the collector would otherwise keep the
        // children of the deleted object. The scheduler would wait half a minute before it tries again.
        for part in ["kube-controller-manager", "kube-scheduler"] {
            self.cluster.kill(part).unwrap();
            self.cluster.revive(part).unwrap();
        }
        disasters::until_it_works(&self.w, &mut self.keeper, &mut self.rng).await;
    }

    /// Performs one random action of a user.
    async fn edit(&mut self) {
        let did = act(&self.w, &mut self.rng).await;
        self.note(did);
        self.edits += 1;
    }

    fn another(&mut self) -> Disaster {
        deck(&mut self.rng).remove(0)
    }

    /// Waits until the cluster is in the wanted state. If the time limit passes, returns the differences.
    async fn settle(&mut self, wanted: &State) -> Vec<String> {
        let (deadline, mut before) = (Instant::now() + PATIENCE, String::new());
        loop {
            self.keeper.pass(BEAT, &mut self.rng).await;
            let wrong = differences(&State::of(&self.w).await, wanted);
            let heads: Vec<&str> = wrong.iter().filter_map(|one| one.lines().next()).collect();
            let heads = format!("to come: {}", heads.join(", "));
            if heads != before {
                self.note(&heads);
                before = heads;
            }
            if wrong.is_empty() || Instant::now() > deadline {
                return wrong;
            }
        }
    }

    /// Returns a message for each object of another client that the operator changed.
    async fn untouched(&self, strangers: &[(String, Value)]) -> Vec<String> {
        let mut wrong = Vec::new();
        for (at, version) in strangers {
            if self.w.look(at).await["metadata"]["resourceVersion"] != *version {
                wrong.push(format!("the operator changed {at}, which belongs to another client"));
            }
        }
        wrong
    }

    /// Returns the requests that the idle operator sends, according to the API server's audit log. After an outage of
    /// the API server, the operator waits for its backoff, and then lists its objects again. So while the operator
    /// sends only list requests, this function observes it again. Lists are a mistake only if they continue until the
    /// time limit.
    async fn noise(&mut self) -> Vec<String> {
        self.w.quiet().await;
        let (audit, user) = (self.cluster.audit(), self.account.user());
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mark = audit.mark().unwrap();
            self.keeper.pass(SILENCE, &mut self.rng).await;
            let mut asked = audit.since(mark, &user).unwrap();
            asked.retain(|request| request.resource != "leases" && request.verb != "watch");
            let comes_back = !asked.is_empty() && asked.iter().all(|request| request.verb == "list");
            if !comes_back || Instant::now() > deadline {
                return asked
                    .iter()
                    .map(|request| format!("although nothing has changed, the operator sent: {request:?}"))
                    .collect();
            }
        }
    }
}
