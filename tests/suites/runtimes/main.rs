//! Starts real programs from the Deployments of the default policies. The programs are KAOS's Agent runtime, KAOS's
//! memory service, the LiteLLM proxy, and `FastMCP`.
//!
//! | module | does |
//! |---|---|
//! | `pod` | reads the pod of a Deployment like the kubelet |
//! | `images` | finds the program for an image |
//! | `node` | runs pods as processes and gives Services addresses |
//! | `cluster` | runs objects with real processes until all objects are ready |
//! | `http` | sends requests |
//! | `warm` | runs many proxies, but imports their packages only once |
//! | `team` | tests Agents that talk, remember and use tools |
//! | `proxies` | runs the LiteLLM proxy with the configurations of the recorded cases |
//! | `variables` | compares the variables that the packages read with a recorded list |
//! | `servers` | runs `FastMCP` with the functions of the recorded cases |
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cluster;
mod http;
mod images;
mod node;
mod pod;
mod proxies;
mod servers;
mod team;
mod variables;
mod warm;
