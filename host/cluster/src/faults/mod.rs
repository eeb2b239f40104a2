//! Injects faults into requests and watch events. A test passes in a plan that decides about each of them.
//!
//! A plan sees every request before it has an effect. It may let the request pass, refuse it, lose its answer after the
//! effect, delay it, or answer it from an older state. A plan also sees every event before it is sent. All plans use
//! one seeded generator, so the seed reproduces a run.

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

    /// Returns whether the verb changes anything.
    pub fn is_write(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

/// A request, as plans, access rules and the journal see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The user.
    pub user: String,
    /// The program, as named in the `User-Agent` header.
    pub program: String,
    /// The verb.
    pub verb: Verb,
    /// API group. Empty for the core group and for documents.
    pub group: String,
    /// Plural of the type. Empty for documents such as discovery.
    pub resource: String,
    /// `status`, `scale`, or empty.
    pub subresource: String,
    /// Namespace. Empty for all namespaces and for cluster-scoped types.
    pub namespace: String,
    /// Name of the object. Empty for creations, and for lists and watches unless a field selector picks one name.
    pub name: String,
    /// Content type, which distinguishes an apply from other patches.
    pub content_type: String,
    /// Whether the request is a dry run.
    pub dry_run: bool,
}

/// The failure of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// A server error with this code, such as 500 or 503.
    Server(u16),
    /// 429, with the seconds to wait.
    Throttled(u64),
    /// 409, as after a write by another client.
    Conflict,
    /// 409 about a quota, as after a write of the quota by another client.
    QuotaConflict,
    /// 409 from an admission webhook, with a message of its own.
    WebhookConflict,
    /// No answer: the connection breaks.
    Disconnect,
}

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Outcome {
    /// The request is answered normally.
    #[default]
    Proceed,
    /// The request fails without an effect.
    FailBefore(Failure),
    /// The request has its effect, and then fails.
    FailAfter(Failure),
    /// A read is answered from the state before this many changes of its type.
    Stale(u64),
}

/// A plan's decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Verdict {
    /// Delay before the outcome.
    pub delay: Duration,
    /// The outcome.
    pub outcome: Outcome,
}

impl From<Outcome> for Verdict {
    fn from(outcome: Outcome) -> Self {
        Self { delay: Duration::ZERO, outcome }
    }
}

/// The fate of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EventFate {
    /// The event is sent.
    #[default]
    Deliver,
    /// The event is never sent, and the watch continues, as with a broken cache in between. Only a new list recovers.
    Drop,
    /// The event is sent twice.
    Duplicate,
    /// The event and all later ones are delayed.
    Delay(Duration),
    /// The watch ends with 410 instead of the event.
    Expire,
    /// The connection breaks instead of the event.
    Cut,
}

/// Decides which faults happen.
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

    /// Called after a write had its effect and before its answer. A test can crash the client here.
    fn applied(&mut self, attempt: &Attempt) {
        let _ = attempt;
    }
}

/// Injects no faults.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFaults;

impl FaultPlan for NoFaults {}

/// Turns a function that decides about requests into a plan.
impl<F> FaultPlan for F
where
    F: FnMut(&Attempt, &mut Rng) -> Verdict + Send,
{
    fn request(&mut self, attempt: &Attempt, rng: &mut Rng) -> Verdict {
        self(attempt, rng)
    }
}
