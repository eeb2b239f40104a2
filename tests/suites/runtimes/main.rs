//! Starts real programs from the Deployments that the default policies make: KAOS's Agent runtime and memory service,
//! the LiteLLM proxy, and `FastMCP`.
//!
//! | module | does |
//! |---|---|
//! | `pod` | reads a Deployment as the kubelet does |
//! | `images` | knows the program behind an image |
//! | `node` | runs pods as processes and gives Services addresses |
//! | `cluster` | plays objects until the processes make them ready |
//! | `http` | sends requests |
//! | `warm` | runs many proxies without importing their packages each time |
//! | `team` | Agents that talk, remember and use tools |
//! | `proxies` | the LiteLLM proxy with the configurations of the recorded cases |
//! | `variables` | compares the variables that the packages read with the accepted ones |
//! | `servers` | `FastMCP` with the functions of the recorded cases |
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
