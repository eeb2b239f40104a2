//! The pass: makes the cluster hold what the policy says, and tells the object how far that came.
//!
//! | step | module |
//! |---|---|
//! | all of them in order | `pass` |
//! | how it ended, and when to look again | `ended` |
//! | which passes the end of the operator waits for | `ending` |
//! | which policies answer, and which when they fail | `select`, `hearing` |
//! | needs and plan | `resolve` |
//! | what somebody's policy plans, tried before it is done | `rehearse` |
//! | the plan done, and how far that came | `reach` |
//! | whether a plan has to wait; for what is applied with it | `gates`, `together` |
//! | the children: all, one, and the decision about one | `apply`, `child`, `decide` |
//! | what stands in a child's way since an owner of the same name went | `left` |
//! | fields that an earlier plan left on a child, and that nobody owns | `leftovers` |
//! | manifests as they are applied here | `wanted` |
//! | replicas that were set before the takeover | `scaled` |
//! | what rolls pods beside their template | `rolls` |
//! | what counts as a difference, and how often it is put right | `drift`, `effort` |
//! | what the server does not take, and when it is asked again | `rejected` |
//! | fields that never change while a child exists | `immutable` |
//! | what is no longer wanted; when it stays for a while | `prune`, `handover` |
//! | finalizers | `finalize` |
//! | an object that is being deleted | `going` |
//! | status: what is said, what the kind declares, since when, written if different | `assess`, `projection`, `times`, `write` |
//! | what is not told yet, because nobody has looked | `unseen` |
//! | what is told where there was no pass to the end | `halt` |
//! | Events | `events` |
//! | whose fields are whose | `fields` |
//! | calls, and what their errors mean | `api`, `error` |
//! | what is kept between passes | `memory` |
//!
//! Which object is next, and when, is left to [`crate::queue`]; what is there, to [`crate::watch`].

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
