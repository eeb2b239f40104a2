//! The operator as a library, for its binary and for tests.

mod blocking;
pub mod catalogue;
pub mod cli;
pub mod client;
mod definitions;
mod discovered;
pub mod embedded;
mod hashing;
pub mod input;
mod kinds;
pub mod lead;
pub mod live;
mod locking;
pub mod masking;
pub mod metrics;
mod moments;
pub mod offline;
pub mod operator;
pub mod package;
pub mod plan;
pub mod policies;
mod processors;
pub mod queue;
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
mod telling;
pub mod watch;
mod yaml;
