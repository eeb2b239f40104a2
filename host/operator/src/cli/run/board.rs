//! The current stage of the process, for the readiness probe.

use std::{collections::BTreeSet, sync::Mutex};

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::watch;

use crate::{
    leader_election::{LEASE, Standing},
    locking::lock,
    operator::Probe,
    serve::Report,
};

pub(super) enum ProcessStage {
    /// A prerequisite is missing.
    Starting(String),
    /// The process waits for the Lease, and keeps its watches and policies warm.
    Waiting(watch::Receiver<Standing>, Probe),
    /// The process reconciles.
    Working(Probe),
    /// The process finishes running passes.
    Stopping,
}

/// Stores the current stage.
pub(super) struct Board(Mutex<ProcessStage>);

impl Board {
    pub(super) fn new() -> Self {
        Self(Mutex::new(ProcessStage::Starting("the policies are being loaded".to_owned())))
    }

    pub(super) fn set(&self, stage: ProcessStage) {
        *lock(&self.0) = stage;
    }

    /// Returns the operator's probe. Fails if this process does not reconcile now.
    fn probe(&self) -> Result<Probe, String> {
        match &*lock(&self.0) {
            ProcessStage::Working(probe) => Ok(probe.clone()),
            _ => Err("this process does not reconcile now".to_owned()),
        }
    }
}

impl Report for Board {
    fn ready(&self) -> Result<String, Vec<String>> {
        match &*lock(&self.0) {
            ProcessStage::Starting(missing) => Err(vec![missing.clone()]),
            // A standby reports that it is ready: otherwise a rollout would wait until the standby leads.
            ProcessStage::Waiting(standing, probe) => match &*standing.borrow() {
                Standing::Unknown(because) => Err(vec![format!("could not acquire the lease {LEASE}: {because}")]),
                Standing::Behind(holder) => {
                    let warm = if probe.is_warm() { "warm" } else { "still listing the objects" };
                    Ok(format!("ok: standing by for {holder}, which holds the lease; {warm}"))
                }
                Standing::Leading => Err(vec!["the operator is starting".to_owned()]),
            },
            ProcessStage::Working(probe) => {
                probe.ready().map(|()| works(&probe.barred(), probe.denied(), &probe.loading()))
            }
            ProcessStage::Stopping => Err(vec!["the process is stopping".to_owned()]),
        }
    }

    fn explain(&self, kind: String, namespace: String, name: String) -> BoxFuture<'static, Result<Value, String>> {
        let probe = self.probe();
        Box::pin(async move { probe?.explain(&kind, &namespace, &name).await })
    }

    fn decisions(&self) -> Result<Value, String> {
        Ok(self.probe()?.decisions())
    }

    fn decisions_of(&self, kind: &str, namespace: &str, name: &str) -> Result<Value, String> {
        self.probe()?.decisions_of(kind, namespace, name)
    }

    fn decision(&self, id: String) -> BoxFuture<'static, Result<Value, String>> {
        let probe = self.probe();
        Box::pin(async move { probe?.decision(&id).await })
    }
}

/// Returns the body of `/readyz` for a working operator: `ok`, and then the open problems. The open problems are
/// unreadable namespaces, objects that wait for rights, and namespaces whose own policies the operator still loads.
fn works(barred: &BTreeSet<String>, denied: usize, loading: &[String]) -> String {
    let mut said = "ok".to_owned();
    if !barred.is_empty() {
        let names: Vec<&str> = barred.iter().map(String::as_str).collect();
        said += &format!(
            ", but the operator can read nothing in {}: the namespace is gone, or the operator lacks rights",
            names.join(", ")
        );
    }
    if denied > 0 {
        let objects_wait = if denied == 1 { "object waits" } else { "objects wait" };
        said += &format!(
            ", but {denied} {objects_wait} for rights that the operator lacks: the conditions of the objects name these \
             rights"
        );
    }
    if !loading.is_empty() {
        said += &format!(", but the operator still loads the policies for {}", loading.join(", "));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_rights_are_reported_after_the_ok() {
        let none = BTreeSet::new();
        assert_eq!(works(&none, 0, &[]), "ok");
        assert_eq!(
            works(&none, 3, &[]),
            "ok, but 3 objects wait for rights that the operator lacks: the conditions of the objects name these rights"
        );
        let told = works(&BTreeSet::from(["a".to_owned()]), 1, &[]);
        assert!(
            told.starts_with("ok, but the operator can read nothing in a: ") && told.contains(", but 1 object waits"),
            "{told}"
        );
        assert_eq!(
            works(&none, 0, &["example.com/v1 Widget in a".to_owned()]),
            "ok, but the operator still loads the policies for example.com/v1 Widget in a"
        );
    }
}
