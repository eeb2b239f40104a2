//! Finds the root causes why an object is not ready. Follows the objects that this object uses, and its children.

use serde_json::Value;

use super::{
    cause::RootCause,
    graph::{Graph, UseSight, is_replaced},
    object_health::{Health, HealthState, first_open, is_seen},
    pod,
};
use crate::{
    input::Identity,
    status::conditions::{ACCEPTED, APPLIED, RESOLVED, reason},
};

/// The relation between the object of a step and the object of the previous step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    /// The object that the user asked about.
    Top,
    /// The object of the previous step uses this object.
    Used,
    /// The object of the previous step owns this object.
    Child,
}

impl Relation {
    /// Returns the word that the output shows before an object's name; empty without such a word.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Top | Self::Child => "",
            Self::Used => "uses ",
        }
    }
}

/// One object on the way to a root cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TraceStep {
    pub(super) object: Identity,
    pub(super) relation: Relation,
    pub(super) health: Health,
}

/// The way from an object to a root cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) steps: Vec<TraceStep>,
    pub(super) cause: RootCause,
}

impl Chain {
    /// Formats the cause. If the last object of the chain is not the first one, the name of the last object precedes
    /// the cause.
    pub(super) fn told(&self) -> String {
        match self.steps.last().filter(|_| self.steps.len() > 1) {
            Some(last) => format!("{}: {}", last.object, self.cause),
            None => self.cause.to_string(),
        }
    }
}

/// Follows objects to root causes.
pub(super) struct Tracer<'a> {
    pub(super) graph: &'a Graph,
    /// The operator's namespace.
    pub(super) home: &'a str,
    /// Whether the user lacks a right to read objects that may show the cause.
    pub(super) is_partial: bool,
}

impl Tracer<'_> {
    /// Returns why an object is not ready, as root causes. Returns none for a ready object.
    pub(super) fn causes(&self, top: &Identity) -> Vec<Chain> {
        let mut found = Vec::new();
        if self.graph.is_open(top) {
            self.follow(top, Relation::Top, &mut Vec::new(), &mut found);
        }
        without_repetitions(found)
    }

    /// Returns the root causes in the objects that a ready object uses.
    pub(super) fn causes_in_uses(&self, top: &Identity) -> Vec<Chain> {
        let (mut found, health) = (Vec::new(), self.graph.health(top));
        let mut steps = vec![TraceStep { object: top.clone(), relation: Relation::Top, health }];
        self.uses(top, &mut steps, &mut found);
        without_repetitions(found)
    }

    fn follow(&self, object: &Identity, relation: Relation, steps: &mut Vec<TraceStep>, found: &mut Vec<Chain>) {
        let value = self.graph.object(object);
        let is_circle = steps.iter().any(|step| step.object == *object);
        steps.push(TraceStep { object: object.clone(), relation, health: self.graph.health(object) });
        if is_circle {
            let first = steps.iter().position(|step| step.object == *object).unwrap_or_default();
            let names: Vec<String> = steps[first..].iter().map(|step| step.object.to_string()).collect();
            found.push(Chain { steps: steps.clone(), cause: RootCause::Circle(names.join(" → ")) });
        } else {
            let before = found.len();
            let cause = if self.graph.is_claimed(object) {
                self.of_claimed(object, value, steps, found)
            } else {
                self.of_child(object, steps, found)
            };
            if found.len() == before {
                found.push(Chain { steps: steps.clone(), cause });
            }
        }
        steps.pop();
    }

    /// Follows an object for which a policy answers.
    ///
    /// Adds the causes in other objects to `found`. If it adds no causes, the caller reports the returned cause.
    fn of_claimed(
        &self,
        of: &Identity,
        object: &Value,
        steps: &mut Vec<TraceStep>,
        found: &mut Vec<Chain>,
    ) -> RootCause {
        if !object["metadata"]["deletionTimestamp"].is_null() {
            let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
            let finalizers = finalizers.filter_map(Value::as_str).map(str::to_owned).collect();
            return RootCause::Deleted { finalizers };
        }
        if !is_seen(object) {
            let is_new = object["status"]["conditions"].is_null();
            let what = if is_new { "this object" } else { "the newest generation of this object" };
            let namespace = of.namespace.clone().unwrap_or_default();
            return RootCause::NotSeen { what, namespace, home: self.home.to_owned() };
        }
        let Some(open) = first_open(object) else { return self.unexplained(of) };
        let text = |field: &str| open[field].as_str().unwrap_or_default();
        let cause = RootCause::Condition { reason: text("reason").to_owned(), message: text("message").to_owned() };
        let waits = match text("type") {
            ACCEPTED => text("status") != "False",
            RESOLVED => text("reason") != reason::NOT_PERMITTED,
            APPLIED => [reason::GATED, reason::REFUSED].contains(&text("reason")),
            // While the pods start, the cause is in the children of the object.
            _ => {
                self.children(of, steps, found);
                return cause;
            }
        };
        if waits {
            self.uses(of, steps, found);
        }
        cause
    }

    /// Follows the objects that an object uses and that are missing or not ready.
    fn uses(&self, of: &Identity, steps: &mut Vec<TraceStep>, found: &mut Vec<Chain>) {
        for used in self.graph.uses(of) {
            match &used.sight {
                UseSight::There(other) if self.graph.is_open(other) => {
                    self.follow(other, Relation::Used, steps, found);
                }
                UseSight::Absent if !used.optional => {
                    let cause = RootCause::NotThere { object: used.reference.to_string() };
                    found.push(Chain { steps: steps.clone(), cause });
                }
                UseSight::There(_) | UseSight::Absent | UseSight::NotRead => {}
            }
        }
    }

    /// Follows the children that are not ready.
    fn children(&self, of: &Identity, steps: &mut Vec<TraceStep>, found: &mut Vec<Chain>) {
        for child in self.graph.children(of) {
            let is_workload = matches!(&*child.identity.kind, "Deployment" | "StatefulSet");
            if is_workload && child.object["spec"]["replicas"] == 0 {
                let Identity { kind, namespace, name, .. } = &child.identity;
                let (kind, place) = (kind.to_lowercase(), namespace.as_deref().unwrap_or_default());
                let scale = format!("kubectl -n {place} scale {kind}/{name} --replicas=1");
                let (object, health) = (child.identity.clone(), self.graph.health(&child.identity));
                let step = TraceStep { object, relation: Relation::Child, health };
                let steps = steps.iter().cloned().chain([step]).collect();
                found.push(Chain { steps, cause: RootCause::ScaledToZero { scale } });
            } else if !is_replaced(child) && self.graph.is_open(&child.identity) {
                self.follow(&child.identity, Relation::Child, steps, found);
            }
        }
    }

    /// Follows a child. Adds the causes in objects below the child to `found`. If it adds no causes, the caller reports
    /// the returned cause.
    fn of_child(&self, of: &Identity, steps: &mut Vec<TraceStep>, found: &mut Vec<Chain>) -> RootCause {
        match &*of.kind {
            "Pod" => self.of_pod(of, steps),
            "PersistentVolumeClaim" => self.unbound(of),
            "Deployment" | "StatefulSet" | "ReplicaSet" | "DaemonSet" | "Job" => {
                self.children(of, steps, found);
                let failed = self.graph.newest_event(of, &["FailedCreate"]);
                let has_pods = self.graph.children(of).next().is_some();
                match failed.filter(|_| !has_pods) {
                    Some(message) => RootCause::NotCreated { message },
                    None => self.unexplained(of),
                }
            }
            _ => self.unexplained(of),
        }
    }

    fn of_pod(&self, of: &Identity, steps: &[TraceStep]) -> RootCause {
        if let Some(claim) = self.graph.claims(of).find(|claim| self.graph.is_open(&claim.identity)) {
            return self.unbound(&claim.identity);
        }
        let event = |reasons: &[&str]| self.graph.newest_event(of, reasons);
        pod::cause(self.graph.object(of), &self.logs_command(steps), event)
    }

    fn unbound(&self, claim: &Identity) -> RootCause {
        let message = self.graph.newest_event(claim, &["ProvisioningFailed", "FailedBinding", "WaitForFirstConsumer"]);
        RootCause::Unbound { claim: claim.name.clone(), message }
    }

    /// Returns a cause for an object whose children, Events and conditions explain nothing. The cause comes from the
    /// object's state and from the line about this state.
    fn unexplained(&self, of: &Identity) -> RootCause {
        let health = self.graph.health(of);
        let message = health.line;
        match health.state {
            HealthState::Stalled => RootCause::Ended { message },
            _ if self.is_partial => RootCause::NotVisible,
            _ => match message.split_once("; ") {
                Some((_, why)) if why.contains("FailedCreate") => RootCause::NotCreated { message: why.to_owned() },
                _ => RootCause::Starting { message },
            },
        }
    }

    /// Returns the command that prints the logs of the last object with a policy in a chain.
    fn logs_command(&self, steps: &[TraceStep]) -> String {
        let owner = steps.iter().rev().find(|step| self.graph.is_claimed(&step.object));
        let Some(TraceStep { object: Identity { kind, namespace, name, .. }, .. }) = owner else {
            return String::new();
        };
        let place = namespace.as_deref().unwrap_or_default();
        format!("kaos-operator logs {}/{name} -n {place}", kind.to_lowercase())
    }
}

/// Keeps one of several chains that differ only in their last object, such as the pods of one `ReplicaSet`.
fn without_repetitions(chains: Vec<Chain>) -> Vec<Chain> {
    let mut kept: Vec<Chain> = Vec::new();
    for chain in chains {
        let way = |chain: &Chain| {
            let steps = chain.steps.split_last().map_or(&[][..], |(_, before)| before).to_vec();
            (steps, chain.steps.last().map(|last| last.object.kind.clone()), chain.cause.clone())
        };
        if !kept.iter().any(|known| way(known) == way(&chain)) {
            kept.push(chain);
        }
    }
    kept
}
