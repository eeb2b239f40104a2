//! Injects faults into requests and watch events. A test provides a plan that decides about each request and event.
//!
//! A plan decides about every request before the request has an effect. As the plan decides, the cluster answers the
//! request normally, refuses it, delays it, answers it from an older state, or loses the answer after the request took
//! effect. A plan also decides about every event before the cluster sends it. All plans use one seeded generator, so
//! the same seed repeats the same run.

mod journal;
mod seeded;

use std::time::Duration;

use fastrand::Rng;

pub use journal::{Entry, Journal};
pub use seeded::SeededFaults;

/// The verb of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Reads one object or document.
    Get,
    /// Lists objects.
    List,
    /// Watches changes.
    Watch,
    /// Creates an object.
    Create,
    /// Replaces an object.
    Update,
    /// Patches or applies an object.
    Patch,
    /// Deletes one object.
    Delete,
    /// Deletes many objects.
    DeleteCollection,
}

impl Verb {
    /// Returns the verb in RBAC's spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }

    /// Returns whether a request with this verb can change objects.
    pub fn is_write(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

/// A request in the form that fault plans, access decisions and the journal use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The name of the user that sent the request.
    pub user: String,
    /// The name of the client program, from the `User-Agent` header.
    pub program: String,
    /// The verb of the request.
    pub verb: Verb,
    /// API group. Empty for the core group, and for documents such as discovery.
    pub group: String,
    /// Plural of the type. Empty for documents such as discovery.
    pub resource: String,
    /// `status`, `scale`, or empty.
    pub subresource: String,
    /// Namespace. Empty for all namespaces and for cluster-scoped types.
    pub namespace: String,
    /// Name of the object. Empty for creations. Also empty for lists and watches, unless a field selector selects one
    /// name.
    pub name: String,
    /// Content type, which distinguishes an apply from other patches.
    pub content_type: String,
    /// Whether the request is a dry run.
    pub dry_run: bool,
}

/// The failure of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// A server error with this status code, such as 500 or 503.
    Server(u16),
    /// A 429 answer with the number of seconds to wait.
    Throttled(u64),
    /// A 409 answer, as if another client had changed the object shortly before.
    Conflict,
    /// A 409 answer about a quota, as if another client had changed the quota shortly before.
    QuotaConflict,
    /// A 409 answer from an admission webhook, with the webhook's own message.
    WebhookConflict,
    /// The client gets no answer: the connection breaks.
    Disconnect,
}

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Outcome {
    /// The cluster answers the request normally.
    #[default]
    Proceed,
    /// The request fails without an effect.
    FailBefore(Failure),
    /// The request has its effect, and then fails.
    FailAfter(Failure),
    /// The cluster answers a read from an older state. The number tells how many of the last changes to objects of the
    /// type this state lacks.
    Stale(u64),
}

/// The decision of a [`FaultPlan`] about one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Verdict {
    /// The delay before the outcome.
    pub delay: Duration,
    /// The outcome.
    pub outcome: Outcome,
}

impl From<Outcome> for Verdict {
    fn from(outcome: Outcome) -> Self {
        Self { delay: Duration::ZERO, outcome }
    }
}

/// The decision of a [`FaultPlan`] about one watch event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EventFate {
    /// The cluster sends the event.
    #[default]
    Deliver,
    /// The cluster never sends the event, but the watch continues, as if a cache between client and server had lost the
    /// event. The client can recover only with a new list.
    Drop,
    /// The cluster sends the event twice.
    Duplicate,
    /// The cluster delays the event and all later events.
    Delay(Duration),
    /// The watch ends with 410, and the cluster does not send the event.
    Expire,
    /// The connection breaks, and the cluster does not send the event.
    Cut,
}

/// A plan that decides which faults happen.
pub trait FaultPlan: Send {
    /// Decides about a request that arrived.
    fn request(&mut self, attempt: &Attempt, rng: &mut Rng) -> Verdict {
        let _ = (attempt, rng);
        Verdict::default()
    }

    /// Decides about an event that a watch is about to send: `ADDED`, `MODIFIED`, `DELETED` or `BOOKMARK`.
    fn event(&mut self, watch: &Attempt, kind: &str, rng: &mut Rng) -> EventFate {
        let _ = (watch, kind, rng);
        EventFate::Deliver
    }

    /// The cluster calls this function after a write took effect, and before it sends the answer. Here, a test can
    /// simulate a crash of the client.
    fn applied(&mut self, attempt: &Attempt) {
        let _ = attempt;
    }
}

/// A plan without faults.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFaults;

impl FaultPlan for NoFaults {}

/// A test can use a function that decides about requests as a plan.
impl<F> FaultPlan for F
where
    F: FnMut(&Attempt, &mut Rng) -> Verdict + Send,
{
    fn request(&mut self, attempt: &Attempt, rng: &mut Rng) -> Verdict {
        self(attempt, rng)
    }
}
