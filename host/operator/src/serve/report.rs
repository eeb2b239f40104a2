//! What is told over HTTP.

use futures_util::future::BoxFuture;
use serde_json::Value;

/// What is told.
pub trait Report: Send + Sync + 'static {
    /// Whether everything is as it should be, with a word about it; otherwise what is missing, a line each.
    fn ready(&self) -> Result<String, Vec<String>>;

    /// What is known of an object: its last inputs, plan and decisions; otherwise why nothing is.
    fn explain(&self, kind: String, namespace: String, name: String) -> BoxFuture<'static, Result<Value, String>>;
}
