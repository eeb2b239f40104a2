//! Waits until a condition is true. If the time limit passes first, the test fails with details in its message.

use std::time::Duration;

use kaos_cluster::Cluster;
use serde_json::Value;
use tokio::time::Instant;

use super::World;
use super::kinds::{At, Kind};
use super::read::{text, version};

/// The time between two polls.
const BEAT: Duration = Duration::from_millis(100);
/// The time limit of a wait in real time.
const MEANWHILE: Duration = Duration::from_mins(2);

impl World {
    /// Waits until `holds` returns true for an object. `holds` gets null for a missing object.
    ///
    /// # Panics
    /// If the time limit passes. The message contains details that can explain the failure.
    pub async fn until(&self, what: &str, at: &str, holds: impl Fn(&Value) -> bool) -> Value {
        self.until_all(what, &[at], |objects| holds(&objects[0])).await.remove(0)
    }

    /// Waits until `holds` returns true for the current state of several objects.
    ///
    /// # Panics
    /// Like [`Self::until`].
    pub async fn until_all(&self, what: &str, at: &[&str], holds: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let deadline = Instant::now() + self.patience();
        loop {
            let mut objects = Vec::new();
            for at in at {
                objects.push(self.look(at).await);
            }
            if holds(&objects) {
                return objects;
            }
            assert!(Instant::now() < deadline, "timed out waiting until {what}\n{}", self.explanation(at).await);
            tokio::time::sleep(BEAT).await;
        }
    }

    /// Waits until an object's status shows the object as ready.
    pub async fn until_ready(&self, at: &str) -> Value {
        self.until(&format!("{at} is ready"), at, super::is_ready).await
    }

    /// Waits until an object no longer exists.
    pub async fn until_gone(&self, at: &str) {
        self.until(&format!("{at} is gone"), at, Value::is_null).await;
    }

    /// Waits until `holds` returns true. Tests use this function for conditions that no single object shows, such as a
    /// count.
    ///
    /// # Panics
    /// If the time limit passes.
    pub async fn until_true(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let deadline = Instant::now() + self.patience();
        while !holds().await {
            assert!(Instant::now() < deadline, "timed out waiting until {what}\n{}", self.explanation(&[]).await);
            tokio::time::sleep(BEAT).await;
        }
    }

    /// Like [`Self::until_true`], but limits the wait in real time. Use this function while a blocked thread stops
    /// simulated time.
    ///
    /// # Panics
    /// If the time limit passes.
    pub async fn until_meanwhile(&self, what: &str, holds: impl AsyncFn() -> bool) {
        let began = std::time::Instant::now();
        while !holds().await {
            let explained = async || self.explanation(&[]).await;
            assert!(began.elapsed() < MEANWHILE, "timed out waiting until {what}\n{}", explained().await);
            tokio::task::yield_now().await;
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until a Warning Event with this reason exists for an object.
    pub async fn until_warned(&self, at: &str, why: &str) {
        let warned = async || self.events(at).await.iter().any(|(of, reason, _)| of == "Warning" && reason == why);
        self.until_true(&format!("there is an Event {why} of {at}"), warned).await;
    }

    /// Waits until nothing in the test's namespace has changed for a while.
    ///
    /// # Panics
    /// If the changes do not end.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub async fn quiet(&self) {
        let (mut before, mut still) = (self.fingerprint().await, 0);
        for _ in 0..200 {
            tokio::time::sleep(BEAT * 10).await;
            let now = self.fingerprint().await;
            still = if now == before { still + 1 } else { 0 };
            before = now;
            if still == 3 {
                return;
            }
        }
        panic!("the objects keep changing\n{}", self.explanation(&[]).await);
    }

    /// Returns the resource versions of all objects in the test's namespace that an operator can write.
    pub async fn fingerprint(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for kind in [
            "Agent",
            "ModelAPI",
            "MCPServer",
            "MemoryStore",
            "Gadget",
            "Deployment",
            "Service",
            "ConfigMap",
            "Secret",
            "ServiceAccount",
            "PersistentVolumeClaim",
            "PodDisruptionBudget",
        ] {
            for object in self.list(kind).await {
                lines.push(format!("{} {}", At::of(&object, &self.namespace), version(&object)));
            }
        }
        lines
    }

    /// Lets time pass.
    pub async fn pass_time(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Returns a text with objects, Events and the last requests, to explain a failed test.
    async fn explanation(&self, at: &[&str]) -> String {
        let mut lines = Vec::new();
        for at in at {
            let mut object = self.look(at).await;
            object["metadata"].as_object_mut().map(|metadata| metadata.remove("managedFields"));
            lines.push(format!("--- {at}\n{}", serde_json::to_string_pretty(&object).unwrap_or_default()));
        }
        lines.push("--- everything".to_owned());
        lines.extend(self.fingerprint().await);
        lines.push("--- policy revisions".to_owned());
        for revision in self.list("PolicyRevision").await {
            let status = |field: &str| text(&revision["status"][field]).to_owned();
            let [state, reason, message] = ["state", "reason", "message"].map(status);
            lines.push(format!("{} {state} {reason}: {message}", text(&revision["metadata"]["name"])));
        }
        lines.push("--- events".to_owned());
        for event in self.list("Event").await {
            lines.push(format!("{} {}: {}", text(&event["type"]), text(&event["reason"]), event_text(&event)));
        }
        lines.extend(self.of_operator(at).await);
        if let Some(cluster) = self.try_embedded() {
            lines.extend(last_requests(cluster));
        }
        lines.join("\n")
    }

    /// Returns lines about the operator: its readiness, its queue, and its explanation of the last pass over each of
    /// these objects.
    async fn of_operator(&self, at: &[&str]) -> Vec<String> {
        let Some(probe) = self.try_probe() else { return vec!["--- no operator runs".to_owned()] };
        let mut lines = vec![format!("--- the operator: ready {:?}, queue {:?}", probe.ready(), probe.queue())];
        for at in at.iter().map(|at| At::parse(at, &self.namespace)) {
            if let Ok(said) = probe.explain(at.kind.kind, &at.namespace, &at.name).await {
                lines.push(format!("{at}: {:#}", said["last"]));
            }
        }
        lines
    }

    /// Returns a function for the watchdog.
    ///
    /// The function returns the text that the watchdog prints. The function never waits, because simulated time stands
    /// still when the watchdog calls it.
    pub(super) fn last_words(&self) -> impl Fn() -> String + use<> {
        let cluster = self.try_embedded().cloned();
        move || cluster.as_ref().map(|cluster| last_requests(cluster).join("\n")).unwrap_or_default()
    }

    /// Returns the type, the reason and the message of each Event about an object.
    pub async fn events(&self, at: &str) -> Vec<(String, String, String)> {
        let at = At::parse(at, &self.namespace);
        let about = |event: &Value| {
            ["regarding", "involvedObject"]
                .iter()
                .any(|field| event[*field]["kind"] == at.kind.kind && event[*field]["name"] == *at.name)
        };
        let events = self.list_in(Kind::named("Event"), &at.namespace).await;
        let own = |field: &Value| text(field).to_owned();
        events
            .iter()
            .filter(|event| about(event))
            .map(|event| (own(&event["type"]), own(&event["reason"]), event_text(event)))
            .collect()
    }
}

/// Returns the last requests in the cluster's journal.
fn last_requests(cluster: &Cluster) -> Vec<String> {
    let entries = cluster.journal().entries();
    let last = entries.iter().skip(entries.len().saturating_sub(60));
    let heading = format!("--- the last of {count} requests", count = entries.len());
    std::iter::once(heading).chain(last.map(|entry| format!("{} {entry}", entry.at))).collect()
}

fn event_text(event: &Value) -> String {
    let note = text(&event["note"]);
    if note.is_empty() { text(&event["message"]).to_owned() } else { note.to_owned() }
}
