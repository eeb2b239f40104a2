//! One pass: makes the cluster match the policy's plan, and writes the result to the object's status.
//!
//! | step | module |
//! |---|---|
//! | all steps in order | `pass` |
//! | which policies answer, and their fallbacks | `select` |
//! | needs and plan; plan gates; dry run; all until a policy takes the object | `resolve`, `dry_run`, `prepare` |
//! | execution of the plan, and its result | `execute`, `applied` |
//! | the children: decision, apply, prune | `children` |
//! | finalizers, and objects that are being deleted | `deletion` |
//! | the status | `status` |
//! | which revisions serve the object, and which fail on it | `ledger` |
//! | when to look again; a pass that did not finish | `ended`, `pass_failed` |
//!
//! | service | module |
//! |---|---|
//! | all services; the object of a pass, with its policies | `context`, `subject`, `selected` |
//! | runs policies, for the steps that think | `policy_runner` |
//! | API server, watch and Events, for the steps that act | `access`, `api`, `error`, `event_text` |
//! | memory between passes; hashes for comparison | `memory`, `mark` |
//! | the wait for the first lists of the children's types | `sync_gate` |
//! | which passes a shutdown waits for | `shutdown` |
//! | the last pass of an object, for the explain page | `explain` |
//!
//! [`crate::queue`] decides which object is next and when. [`crate::watch`] knows what exists in the cluster.

mod access;
mod api;
mod applied;
mod children;
mod context;
mod deletion;
mod dry_run;
mod ended;
mod error;
mod event_text;
mod execute;
mod explain;
mod ledger;
mod mark;
mod memory;
mod pass;
mod pass_failed;
mod policy_runner;
mod prepare;
mod resolve;
mod select;
mod selected;
mod shutdown;
mod status;
mod subject;
mod sync_gate;

pub(crate) use access::Access;
pub(crate) use children::{
    immutable::never_changes,
    leftover_fields::{leftovers, pull_policy},
    managed_fields::put_on,
};
pub(crate) use context::{Context, Rules};
pub(crate) use ended::{Ended, Next};
pub(crate) use explain::explain;
pub(crate) use memory::Memories;
pub(crate) use pass::pass;
pub(crate) use pass_failed::PassFailed;
pub(crate) use policy_runner::PolicyRunner;
pub(crate) use select::fallback_round::FallbackRound;
pub(crate) use shutdown::unless_given_up;
pub(crate) use status::{declared_fields::DeclaredFields, publish::publish_failure};
pub(crate) use sync_gate::SyncGate;
