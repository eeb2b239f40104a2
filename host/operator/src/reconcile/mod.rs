//! Runs a pass over one object: makes the cluster match the policy's plan, and writes the result to the object's
//! status.
//!
//! | step | module |
//! |---|---|
//! | runs all steps in order | `pass` |
//! | chooses the policies that answer, and their fallbacks | `select` |
//! | resolves needs and plan; checks plan gates; sends the dry run; repeats this until a policy accepts the object | `resolve`, `dry_run`, `prepare` |
//! | executes the plan, and returns the result | `execute`, `applied` |
//! | decides about children, applies and prunes them | `children` |
//! | handles finalizers, and objects that are being deleted | `deletion` |
//! | computes and writes the status | `status` |
//! | skips an object that an earlier process proved to be settled; makes such proofs | `proof` |
//! | records which revisions serve the object, and which fail on it | `ledger` |
//! | keeps decisions of the policies in the flight recorder | `flight_record` |
//! | computes when the next pass must run; reports a pass that did not finish | `ended`, `pass_failed` |
//!
//! | service | module |
//! |---|---|
//! | all services; the object of a pass, with its policies | `context`, `subject`, `selected` |
//! | runs policies, for the steps without I/O; measures each of their calls | `policy_runner`, `policy_calls` |
//! | API server, watch and Events, for the steps with I/O | `access`, `api`, `error`, `event_text` |
//! | memory between passes; hashes for comparison | `memory`, `mark` |
//! | lets passes wait for the first lists of the children's types | `sync_gate` |
//! | ends passes at a shutdown | `shutdown` |
//! | explains an object, for the explain page | `explain` |
//!
//! [`crate::queue`] decides which object is next, and when. [`crate::watch`] stores the objects of the cluster.

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
mod flight_record;
mod ledger;
mod mark;
mod memory;
mod pass;
mod pass_failed;
mod policy_calls;
mod policy_runner;
mod prepare;
mod proof;
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
pub(crate) use policy_calls::PolicyCalls;
pub(crate) use policy_runner::PolicyRunner;
pub(crate) use resolve::gates::is_there;
pub(crate) use select::fallback_round::decide;
pub(crate) use shutdown::unless_given_up;
pub(crate) use status::{declared_fields::DeclaredFields, publish::publish_failure};
pub(crate) use sync_gate::SyncGate;
