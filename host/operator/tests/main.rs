//! The verbs of the command line: each runs the real binary. One executable for all of them, since linking one takes longer
//! than running most.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "that is how tests fail")]

mod asking;
mod demo;
mod names;
mod new;
mod on_cluster;
mod overlay;
mod pack;
mod panicking;
mod plan;
mod policies;
mod release;
mod removing;
mod render;
mod shipping;
#[path = "support/soak.rs"]
mod soak;
#[path = "support/stage.rs"]
mod stage;
mod support;
mod today;
mod traces;
mod unreachable;
mod upgrading;
