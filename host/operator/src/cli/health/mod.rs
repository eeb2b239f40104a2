//! The commands that show the state of objects in a cluster, with the user's kubeconfig and rights.
//!
//! | module | content |
//! |---|---|
//! | `status`, `tree`, `why`, `events`, `logs` | the commands |
//! | `place` | the commands' flags for the cluster and the namespaces |
//! | `read`, `rights` | reads the objects, and names missing rights |
//! | `graph` | the objects with their connections |
//! | `object_health`, `state`, `pod` | the state of one object in a line |
//! | `trace`, `cause` | the way from an object to the root causes, each with its remedy |
//! | `answer` | the answers for programs |
//! | `survey` | the same answers for the console, from objects that the console already has |

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
#[cfg(feature = "console")]
mod survey;
mod trace;
mod tree;
mod why;

#[cfg(feature = "console")]
pub(super) use answer::{CauseAnswer, ObjectName, StepAnswer};
#[cfg(any(feature = "console", feature = "schema"))]
pub(super) use answer::{EventAnswer, TreeAnswer};
#[cfg(feature = "schema")]
pub(super) use answer::{StatusAnswer, WhyAnswer};
pub(super) use events::Events;
pub(super) use logs::Logs;
#[cfg(feature = "console")]
pub(super) use object_health::HealthState;
#[cfg(feature = "console")]
pub(super) use place::ClusterFlags;
#[cfg(feature = "console")]
pub(super) use rights::{MissingRight, resource};
pub(super) use status::Status;
#[cfg(feature = "console")]
pub(super) use survey::{Sources, Survey, state_of};
pub(super) use tree::Tree;
pub(super) use why::Why;
