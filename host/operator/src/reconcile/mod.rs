//! One pass: makes the cluster match the policy's plan, and writes the result to the object's status.
//!
//! | step | module |
//! |---|---|
//! | all steps in order | `pass` |
//! | the result of a pass, and when to look again | `ended` |
//! | which passes a shutdown waits for | `ending` |
//! | which policies answer, and their fallbacks | `select`, `hearing` |
//! | needs and plan | `resolve` |
//! | dry run of an installed policy's plan | `rehearse` |
//! | execution of the plan, and its outcome | `reach` |
//! | plan gates; the wait for objects of the same apply | `gates`, `together` |
//! | the children: all, one, and the decision about one | `apply`, `child`, `decide` |
//! | children of a deleted owner of the same name | `left` |
//! | fields that an earlier plan left on a child, without a field manager | `leftovers` |
//! | manifests in their final form | `wanted` |
//! | replicas that were set before the takeover | `scaled` |
//! | restarts of pods when a Secret or ConfigMap changes | `rolls` |
//! | drift, and the limit on repairs | `drift`, `effort` |
//! | manifests that the server rejected, and their retries | `rejected` |
//! | fields that never change while a child exists | `immutable` |
//! | deletion of unplanned children; workloads that stay for a while | `prune`, `handover` |
//! | finalizers | `finalize` |
//! | an object that is being deleted | `going` |
//! | status: contents, declared fields, times, writing | `assess`, `projection`, `times`, `write` |
//! | the short delay before the first status | `unseen` |
//! | the status of a pass that stopped early | `halt` |
//! | Events | `events` |
//! | managed fields | `fields` |
//! | calls, and the meaning of their errors | `api`, `error` |
//! | memory between passes | `memory` |
//!
//! [`crate::queue`] decides which object is next and when. [`crate::watch`] knows what exists in the cluster.

mod api;
mod apply;
mod assess;
mod child;
mod context;
mod decide;
mod drift;
mod effort;
mod ended;
mod ending;
mod error;
mod events;
mod explain;
mod fields;
mod finalize;
mod gates;
mod going;
mod halt;
mod handover;
mod hearing;
mod held_back;
mod immutable;
mod left;
mod leftovers;
mod mark;
mod memory;
mod pass;
mod projection;
mod prune;
mod reach;
mod rehearse;
mod rejected;
mod resolve;
mod rolls;
mod scaled;
mod select;
mod subject;
mod times;
mod together;
mod unseen;
mod wanted;
mod write;

pub use context::Clock;
pub(crate) use context::{Context, Rules};
pub(crate) use ended::{Ended, Next};
pub(crate) use ending::unless_given_up;
pub(crate) use events::Events;
pub(crate) use fields::put_on;
pub(crate) use halt::Halt;
pub(crate) use hearing::Hearing;
pub(crate) use held_back::HeldBack;
pub(crate) use immutable::never_changes;
pub(crate) use leftovers::leftovers;
pub(crate) use memory::Memories;
pub(crate) use projection::Projections;
