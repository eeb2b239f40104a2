//! An embedded cluster: an in-memory Kubernetes API server with the few controllers that an operator needs.
//!
//! **Do not use this cluster in production.** The cluster stores no data on disk, has no protection and lacks most of
//! Kubernetes. Use it for fast, deterministic tests, and for demonstrations on a laptop. Tests compare the cluster's
//! answers with recordings from a real server (`tests/recorded`).
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
//! | module | content |
//! |---|---|
//! | `cluster`, `inner` | the handle: start, connect, control and inspect a cluster; the parts that handles share |
//! | [`faults`] | injected faults, and the journal of requests |
//! | `controllers` | Deployments, `StatefulSet`s, Jobs, pods, budgets, garbage collection, namespaces, CustomResourceDefinitions |
//! | `http` | HTTP requests, answers and streams |
//! | `api` | the effect and the answer of each request |
//! | `apply` | managed fields, server-side apply, strategic merge |
//! | `kinds` | rules of the built-in kinds |
//! | `schema`, `catalogue` | the shapes of objects, and the served types |
//! | `logs` | logs of containers, which tests write |
//! | `storage`, `state`, `signal` | objects, revisions, the watch log, and its subscribers |
//!
//! The cluster has no admission webhooks, conversion webhooks, quotas, priorities, volumes or exec. It has only the
//! logs that a test writes. It has no `EndpointSlice`s for Services and no `OpenAPI` v2 in protobuf, and it does not
//! detect duplicate JSON keys. `kubectl api-resources` lists the built-in kinds. If a new schema changes a list from
//! atomic to granular or back, the cluster does not adapt the list's managed fields.
//!
//! The time comes from a [`Clock`] and tokio's timers, and random values come from a seed. Nothing depends on the order
//! of a hash map. So a test under tokio's paused time can repeat a run exactly.

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
mod logs;
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
