//! What only real Kubernetes can show: the control plane, the chart, the operator as a process.
//!
//! `tests/run e2e` provides the programs and runs it. All tests share one cluster, which the first of them starts; those
//! that install the chart take turns.

mod admission;
mod cluster;
mod install;
mod life;
mod process;
mod replicas;
mod rights;
mod samples;
mod support;
mod trouble;
mod uninstall;
mod upgrade;
mod uses;
