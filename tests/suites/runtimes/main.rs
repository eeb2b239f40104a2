//! Tests real programs with the pods that the default policies plan. The programs are KAOS's Agent runtime, KAOS's
//! memory service, the LiteLLM proxy, and `FastMCP`.
//!
//! | module | does |
//! |---|---|
//! | `pod` | reads a pod like the kubelet |
//! | `images` | finds the program for an image |
//! | `node` | runs pods as processes |
//! | `kubelet`, `network` | join the node to a real control plane |
//! | `cluster` | starts the control plane, the operator and the node |
//! | `http` | sends requests |
//! | `warm` | runs many proxies without importing their packages each time |
//! | `gateway`, `gateway_policy`, `decision_point` | forward requests if OPA allows them, as a SecurityPolicy says |
//! | `samples` | tests samples like those of KAOS 0.8.4 |
//! | `team` | tests Agents that talk, remember and use tools |
//! | `secured` | tests that samples 7 and 8 answer only callers with a grant |
//! | `proxies` | runs the LiteLLM proxy with the configurations of the recorded cases |
//! | `variables` | compares the variables that the packages read with a recorded list |
//! | `servers` | runs `FastMCP` with the functions of the recorded cases |
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cluster;
mod decision_point;
mod gateway;
mod gateway_policy;
mod http;
mod images;
mod kubelet;
mod network;
mod node;
mod pod;
mod proxies;
mod samples;
mod secured;
mod servers;
mod team;
mod variables;
mod warm;
