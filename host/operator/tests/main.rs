//! Tests the commands of `kaos-operator`. Each test runs the real binary. All tests are in one executable, because
//! linking an executable takes longer than running most tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "that is how tests fail")]

mod asking;
mod checking;
mod conform;
mod console;
mod demo;
mod health;
mod names;
mod new;
mod on_cluster;
mod overlay;
mod pack;
mod panicking;
mod plan;
mod plugin;
mod policies;
mod previewing;
mod recording;
mod release;
mod removing;
mod render;
mod routes;
mod shipping;
#[path = "support/soak.rs"]
mod soak;
#[path = "support/stage.rs"]
mod stage;
mod steering;
mod support;
mod today;
mod traces;
mod unreachable;
mod upgrading;
mod upgrading_accepted;
mod upgrading_gateway;
mod upgrading_kept;
mod upgrading_keyless;
mod upgrading_left_out;
mod upgrading_protected;
mod upgrading_references;
mod upgrading_refused;
mod upgrading_takeover;
