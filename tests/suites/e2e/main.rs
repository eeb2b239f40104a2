//! Tests that need real Kubernetes: the control plane, the chart, the operator as a process.
//!
//! `tests/run e2e` provides the programs and runs the tests. Tests that install nothing share a cluster, which the
//! first of them starts. Tests that install the chart take turns on that cluster and others.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "that is how tests fail")]

mod administrator;
mod admission;
mod cluster;
mod install;
mod lane;
mod life;
mod new_kind;
mod pages;
mod policies;
mod process;
mod replicas;
mod restricted;
mod rights;
mod samples;
mod support;
mod today;
mod trouble;
mod uninstall;
mod upgrade;
