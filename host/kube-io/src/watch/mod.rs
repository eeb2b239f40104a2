//! Watches the types that the active policies claim, and no other types. This module has no code for particular kinds.
//!
//! | module | content |
//! |---|---|
//! | `coverage`, `plan` | the watched types and how each is watched; the resulting watches |
//! | `discovery`, `known`, `definitions` | the served types, and their changes |
//! | `handle` | [`Watch`], as the rest of the operator uses it |
//! | `reflector`, `page`, `page_request`, `event`, `watch_error` | follows one collection through all errors |
//! | `sent_object`, `managed_fields`, `cached_object`, `text`, `dictionary`, `bare`, `known_labels`, `cache`, `fetched_objects`, `secret_metadata`, `by_label`, `selected` | the cached objects |
//! | `needs`, `difference`, `allowance`, `charge` | the reverse index of needs, the objects that a change concerns, and the limits for each namespace |
//! | `name_conflicts`, `owners` | names that another owner has; the children of each owner |
//! | `state`, `slot`, `apply_event`, `wake_log` | the whole state; incoming events, and the objects that they wake; the last of these objects |
//! | `in_flight_writes`, `write_guard` | skips the events of an owner's own write |
//! | `denied` | retries when rights return |
//! | `look`, `lookup`, `report` | reads for passes, metrics and readiness |
//! | `foreign_state`, `foreign_watch` | reports watches that other parts of the operator run |
//! | `supervise`, `shared` | the tasks, and the state that they share |
//! | `fetch_referenced`, `adoption_sweep` | further requests: needed objects, children without the operator's label |
//!
//! All readers of a type share one store. The operator watches all objects of claimed kinds and of the types that
//! policies read. Of the types that policies emit, the operator watches the objects with the label that every child
//! has. The operator never watches all ConfigMaps or all Secrets in full. While an object needs ConfigMaps or Secrets,
//! the operator watches the needed objects by name or by labels. Of Secrets, the operator watches only metadata. An
//! event wakes the objects that the event concerns, through the callback of [`Watch::new`]. The queue and `reconcile`
//! decide when a pass runs and what it does.

mod adoption_sweep;
mod allowance;
mod apply_event;
mod bare;
mod by_label;
mod cache;
mod cached_object;
mod charge;
mod coverage;
mod definitions;
mod denied;
mod dictionary;
mod difference;
mod discovery;
mod event;
mod fetch_referenced;
mod fetched_objects;
mod foreign_state;
mod foreign_watch;
mod handle;
mod in_flight_writes;
mod known;
mod known_labels;
mod look;
mod lookup;
mod managed_fields;
mod name_conflicts;
mod needs;
mod options;
mod owners;
mod page;
mod page_request;
mod plan;
mod plan_watches;
mod reflector;
mod report;
mod secret_metadata;
mod selected;
mod sent_object;
mod shared;
mod slot;
mod state;
mod supervise;
#[cfg(test)]
mod tests;
mod text;
mod wake_log;
mod watch_error;
mod write_guard;

pub use crate::object_key::ObjectKey;
pub use allowance::{Allowance, TooMany};
pub use coverage::{Claimed, Coverage, is_guarded};
pub use discovery::{Served, discover, discover_type};
pub use foreign_watch::ForeignWatch;
pub use handle::Watch;
pub use lookup::{PassLookup, Seen};
pub use options::{Wake, WatchOptions};
pub use plan::Scope;
pub use wake_log::Moment;
pub use write_guard::WriteGuard;
