//! The operator as a library, for its binary and for tests.

mod blocking;
pub mod catalogue;
pub mod cli;
mod definitions;
mod discovery;
pub mod embedded;
pub mod input;
mod kinds;
pub mod live;
pub mod masking;
pub mod metrics;
pub mod offline;
pub mod operator;
pub mod package;
pub mod plan;
pub mod policies;
pub mod presets;
mod processors;
pub mod rbac;
pub mod reading;
mod reconcile;
pub mod release;
pub mod schema;
#[cfg(feature = "authoring")]
mod sections;
pub mod serve;
mod server;
pub mod status;
mod timestamps;
mod yaml;

pub use kaos_kube_io::{client, leader_election as lead, queue};
use kaos_kube_io::{error_text as telling, hashing, locking};
// Names that parts of the operator still use.
use {discovery as discovered, timestamps as moments};

/// The watches of `kaos-kube-io`.
pub mod watch {
    pub use kaos_kube_io::watch::*;

    pub(crate) use kaos_kube_io::watch::{ForeignWatch as Beside, WriteGuard as Writing};
}
