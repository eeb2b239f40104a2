//! The embedded cluster, as its clients see it. One executable for all of it, since linking one takes longer than running it.
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
