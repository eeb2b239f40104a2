//! Receives requests, and sends answers and streams, over TCP or within the process.

mod answer;
mod body;
mod host;
mod kubeconfig;
mod respond;
mod server;
mod service;
mod stream;

pub use body::{Body, Disconnected};
pub use server::Server;
pub use service::ClusterService;
