//! The operator as a library, for its binary and for tests.

mod blocking;
pub mod catalogue;
pub mod cli;
mod clock;
mod config_maps;
pub mod conform;
pub mod decision_point;
mod definitions;
mod discovery;
pub mod embedded;
pub mod fuzz;
pub mod group_kind;
pub mod input;
mod kinds;
pub mod left_out;
pub mod live;
pub mod masking;
pub mod metrics;
pub mod offline;
pub mod operator;
pub mod package;
mod parallel;
pub mod plan;
mod plan_gates;
mod pods;
pub mod policies;
pub mod presets;
mod preview;
mod processors;
pub mod rbac;
pub mod reading;
mod reconcile;
pub mod record;
pub mod release;
pub mod replay;
pub mod schema;
#[cfg(feature = "authoring")]
mod sections;
pub mod serve;
mod server;
pub mod status;
mod timestamps;
mod trace;
mod yaml;

use kaos_kube_io::{backoff, error_text, events, hashing, locking};
pub use kaos_kube_io::{client, leader_election, queue, watch};
