//! Tests of the default policies: recorded behaviour, size, settings and hostile objects. Also tests the contract. The
//! modules share one test executable, because linking an executable takes longer than running the tests of most
//! modules.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "that is how tests fail")]

mod contract;
mod corpus;
mod gitops;
mod go_types;
mod hostile;
mod parity;
mod script;
mod settings;
mod size;
mod warnings;
