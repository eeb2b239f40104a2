//! Tests that need real Kubernetes: the control plane, the chart, and the operator as a process.
//!
//! `tests/run e2e` provides the programs and runs the tests. Tests that install nothing share a cluster, which the
//! first of these tests starts. Each test that installs the chart has this cluster or a further cluster for itself
//! while the test runs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "that is how tests fail")]

mod administrator;
mod admission;
mod cluster;
mod decision_point;
mod install;
mod lane;
mod left_by_kaos;
mod life;
mod new_kind;
mod pages;
mod policies;
mod process;
mod replicas;
mod restricted;
mod rights;
mod rollouts;
mod samples;
mod scripted;
mod secured;
mod states;
mod support;
mod takeover;
mod today;
mod trouble;
mod uninstall;
mod upgrade;
