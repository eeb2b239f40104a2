//! Tests the embedded cluster through its clients. All tests share one executable, because linking takes longer than
//! running them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what tests share fails by panicking")]

mod behaviour;
mod clients;
mod definitions;
mod faults;
mod kubectl;
mod recorded;
mod refusals;
mod support;
mod watching;
mod workloads;
