//! Replicas of the operator that share a Lease, as with `kaos-operator run --leader-elect`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use kaos_cluster::faults::Entry;
use kaos_operator::client::CallLayer;
use kaos_operator::leader_election::{Election, Fence, LEASE, Timing};
use kaos_operator::metrics::Metrics;
use kaos_operator::operator::Operator;
use kube::Client;
use tokio_util::sync::CancellationToken;

use super::World;
use super::faults::{OPERATOR, is_operator};
use super::read::text;
use super::requests::Sort;
use super::running::Running;
use super::scenario::SYSTEM;

/// The time limit of a replica for a request.
const DEADLINE: Duration = Duration::from_secs(15);

/// Returns the user name of the replica with this number.
pub fn user(replica: u32) -> String {
    format!("{OPERATOR}-{replica}")
}

/// Returns a message for each write that the API server accepted from a replica without the Lease.
pub fn second_writers(entries: &[Entry]) -> Vec<String> {
    let mut holder = None;
    let mut wrong = Vec::new();
    for entry in entries.iter().filter(|entry| is_operator(&entry.attempt.user)) {
        let user = Some(entry.attempt.user.as_str());
        match Sort::of(entry) {
            Sort::Lease if entry.attempt.verb.is_write() && (200..300).contains(&entry.code) => holder = user,
            Sort::Write | Sort::Event if (200..300).contains(&entry.code) && holder != user => {
                wrong.push(format!("a replica without the Lease wrote: {time} {entry}", time = entry.at));
            }
            _ => {}
        }
    }
    wrong
}

impl World {
    /// Starts a replica on the embedded cluster. If the replica loses the Lease, it ends, and
    /// [`CrashPoint::reached`](super::crash::CrashPoint::reached) returns its user.
    ///
    /// # Panics
    /// If the replica cannot be assembled.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub fn spawn_replica(&self, user: &str) {
        let running = self.assemble_replica(user).unwrap_or_else(|error| panic!("the replica cannot start: {error:#}"));
        self.running.borrow_mut().push(running);
    }

    fn assemble_replica(&self, user: &str) -> Result<Running> {
        let lives = &self.setting.lives;
        lives.set(lives.get() + 1);
        let identity = format!("{user}-{}", lives.get());
        let metrics = Arc::new(Metrics::new());
        let client = |fence: &Fence| {
            let layer = CallLayer { deadline: DEADLINE, fence: fence.clone(), metrics: metrics.clone() };
            let way = self.crash_point.on(&self.embedded().service(), user);
            Client::new(layer.around(way), self.namespace.clone())
        };
        let fence = Fence::closed_at_first();
        let election =
            Election::new(client(&Fence::open()), SYSTEM, identity.clone(), Timing::default(), fence.clone());
        let (point, own, client) = (self.crash_point.clone(), user.to_owned(), client(&fence));
        let run = |mut operator: Operator, stop: CancellationToken| {
            tokio::spawn(async move {
                let leads = operator.stand_by(election.win());
                let Some(mut held) = stop.run_until_cancelled(leads).await else { return Ok(()) };
                let ended = tokio::select! {
                    biased;
                    ended = operator.run(stop.clone()) => ended,
                    _lost = held.keep() => {
                        point.reach(&own);
                        return Ok(());
                    }
                };
                // Ignore an error: if the replica cannot release the Lease, the Lease expires later.
                drop(held.release().await);
                ended
            })
        };
        self.run(client, Arc::clone(&metrics), (user.to_owned(), identity), run)
    }

    /// Returns the user name of the running replica that holds the Lease, or `None` without such a replica.
    pub async fn leader(&self) -> Option<String> {
        let lease = self.look(&format!("{SYSTEM}:Lease/{LEASE}")).await;
        let holder = text(&lease["spec"]["holderIdentity"]);
        let running = self.running.borrow();
        running.iter().find(|running| running.identity == holder).map(|running| running.user.clone())
    }

    /// Kills the operator with this user name immediately, without a graceful stop.
    pub async fn crash_one(&self, user: &str) {
        let all = std::mem::take(&mut *self.running.borrow_mut());
        let (gone, left): (Vec<Running>, Vec<Running>) = all.into_iter().partition(|running| running.user == user);
        *self.running.borrow_mut() = left;
        for operator in gone {
            operator.task.abort();
            let _cancelled = operator.task.await;
        }
    }
}
