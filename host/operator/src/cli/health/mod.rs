//! The verbs that show the state of objects in a cluster, with the user's kubeconfig and rights.
//!
//! | module | content |
//! |---|---|
//! | `status`, `tree`, `why`, `events`, `logs` | the verbs |
//! | `place` | the verbs' flags for the cluster and the namespaces |
//! | `read`, `rights` | reads the objects, and names missing rights |
//! | `graph` | the objects with their connections |
//! | `object_health`, `state`, `pod` | the state of one object in a line |
//! | `trace`, `cause` | the way from an object to the root causes, each with its remedy |
//! | `answer` | the answers for programs |

mod answer;
mod cause;
mod changes;
mod events;
mod graph;
mod logs;
mod object_health;
mod place;
mod pod;
mod read;
mod rights;
mod state;
mod status;
mod trace;
mod tree;
mod why;

#[cfg(feature = "schema")]
pub(super) use answer::{EventAnswer, StatusAnswer, TreeAnswer, WhyAnswer};
pub(super) use events::Events;
pub(super) use logs::Logs;
pub(super) use status::Status;
pub(super) use tree::Tree;
pub(super) use why::Why;
