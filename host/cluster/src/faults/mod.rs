//! Faults: what can go wrong with a request or a watch event, decided by a plan that a test passes in.
//!
//! A plan sees every request before anything happens and may let it pass, refuse it, lose its answer after it was
//! applied, delay it, or show it an older state; and it sees every event before it is sent. Plans draw from one seeded
//! generator, so a run is repeated by its seed.

mod journal;
mod seeded;

use std::time::Duration;

use fastrand::Rng;

pub use journal::{Entry, Journal};
pub use seeded::SeededFaults;

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Reads one object or document.
    Get,
    /// Reads many.
    List,
    /// Follows changes.
    Watch,
    /// Creates.
    Create,
    /// Replaces.
    Update,
    /// Patches or applies.
    Patch,
    /// Deletes one.
    Delete,
    /// Deletes many.
    DeleteCollection,
}

impl Verb {
    /// As RBAC writes it.
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

    /// Whether it changes anything.
    pub fn is_write(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }
}

/// A request, as plans, access rules and the journal see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Who asks.
    pub user: String,
    /// What asks: the name that the program gives itself in its requests.
    pub program: String,
    /// What is asked for.
    pub verb: Verb,
    /// The API group; empty for the core group and for documents.
    pub group: String,
    /// The plural of the type; empty for documents such as discovery.
    pub resource: String,
    /// `status`, `scale`, or empty.
    pub subresource: String,
    /// The namespace; empty for everywhere and for cluster-scoped types.
    pub namespace: String,
    /// The object's name; empty for creations, and for lists and watches unless a field selector picks one name.
    pub name: String,
    /// The content type, which tells an apply from other patches.
    pub content_type: String,
    /// Whether nothing is to be kept.
    pub dry_run: bool,
}

/// How a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// An error of the server with this code, such as 500 or 503.
    Server(u16),
    /// 429, with the seconds to wait.
    Throttled(u64),
    /// 409, as if somebody else had written.
    Conflict,
    /// 409 about a quota, as if somebody else had written that.
    QuotaConflict,
    /// 409 of an admission webhook, in its own words.
    WebhookConflict,
    /// No answer: the connection breaks.
    Disconnect,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Outcome {
    /// It is answered as it should be.
    #[default]
    Proceed,
    /// It fails before it had any effect.
    FailBefore(Failure),
    /// It has its effect, and then fails.
    FailAfter(Failure),
    /// A read is answered from the state before this many changes of its type.
    Stale(u64),
}

/// A plan's decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Verdict {
    /// How long it waits first.
    pub delay: Duration,
    /// What becomes of it then.
    pub outcome: Outcome,
}

impl From<Outcome> for Verdict {
    fn from(outcome: Outcome) -> Self {
        Self { delay: Duration::ZERO, outcome }
    }
}

/// What becomes of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EventFate {
    /// It is sent.
    #[default]
    Deliver,
    /// It is never sent, and the watch goes on: what a broken cache in between does. Nothing heals it but a new list.
    Drop,
    /// It is sent twice.
    Duplicate,
    /// It is sent later, and everything behind it too.
    Delay(Duration),
    /// The watch ends with 410 in its place.
    Expire,
    /// The connection breaks in its place.
    Cut,
}

/// Decides what goes wrong.
pub trait FaultPlan: Send {
    /// A request arrived.
    fn request(&mut self, attempt: &Attempt, rng: &mut Rng) -> Verdict {
        let _ = (attempt, rng);
        Verdict::default()
    }

    /// A watch is about to send an event: `ADDED`, `MODIFIED`, `DELETED` or `BOOKMARK`.
    fn event(&mut self, watch: &Attempt, kind: &str, rng: &mut Rng) -> EventFate {
        let _ = (watch, kind, rng);
        EventFate::Deliver
    }

    /// A write had its effect and is about to be answered; a place to crash the client at.
    fn applied(&mut self, attempt: &Attempt) {
        let _ = attempt;
    }
}

/// Nothing goes wrong.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFaults;

impl FaultPlan for NoFaults {}

/// A plan from a function that decides about requests.
impl<F> FaultPlan for F
where
    F: FnMut(&Attempt, &mut Rng) -> Verdict + Send,
{
    fn request(&mut self, attempt: &Attempt, rng: &mut Rng) -> Verdict {
        self(attempt, rng)
    }
}
