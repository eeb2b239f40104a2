//! An embedded cluster: an in-memory Kubernetes API server with just enough behaviour to run an operator against.
//!
//! **It is no product for production.** It keeps nothing, protects nothing and leaves out most of Kubernetes. It is for
//! fast deterministic tests and for demonstrations on a laptop, and it is kept honest by comparing its answers with
//! recordings from a real server (`tests/recorded`).
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! let cluster = kaos_cluster::Cluster::start();
//! // In process, without sockets: kube::Client::new(cluster.service(), "default")
//! // Over TCP, for kubectl:
//! let server = cluster.listen(([127, 0, 0, 1], 0).into()).await?;
//! std::fs::write("kubeconfig", server.kubeconfig("admin"))?;
//! # Ok(())
//! # }
//! ```
//!
//! | module | what is in it |
//! |---|---|
//! | `cluster`, `inner` | the handle: start, connect, script, look inside; and the parts that handles share |
//! | [`faults`] | what goes wrong, and the journal of requests |
//! | `controllers` | Deployments, `StatefulSet`s, Jobs, pods, budgets, garbage collection, namespaces, definitions |
//! | `http`, `respond` | requests in, answers and streams out |
//! | `api` | what each request means |
//! | `apply` | managed fields, server-side apply, strategic merge |
//! | `kinds` | rules of the built-in kinds |
//! | `schema`, `catalogue` | what objects look like, and which are served |
//! | `storage`, `state`, `signal` | objects, revisions, the watch log, and who waits for it |
//!
//! Left out on purpose: admission and conversion webhooks, quotas, priorities, volumes, logs and exec, `EndpointSlice`s of
//! Services, `OpenAPI` v2 in protobuf, detection of duplicate JSON keys, and every built-in kind that is not listed by
//! `kubectl api-resources`. Lists that change between atomic and granular from one schema to the next keep their managed
//! fields as they were.
//!
//! Time is a [`Clock`] and tokio's timers, randomness is seeded, and nothing depends on the order of a hash map: under
//! paused tokio time a run is repeated exactly.

mod access;
mod api;
mod apply;
mod bootstrap;
mod catalogue;
mod clock;
mod cluster;
mod controllers;
pub mod faults;
mod http;
mod inner;
mod kinds;
mod lock;
mod respond;
mod run;
mod schema;
mod signal;
mod state;
mod status;
mod storage;

pub use catalogue::kinds;
pub use clock::{Clock, SystemClock, TokioClock};
pub use cluster::{Builder, Cluster};
pub use controllers::{Controller, PodFate};
pub use http::{Body, ClusterService, Disconnected, Server};
