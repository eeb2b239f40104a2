//! The source of the pages.

use futures_util::future::BoxFuture;
use serde_json::Value;

/// The source of the pages.
pub trait Report: Send + Sync + 'static {
    /// Returns a text about readiness. If the operator is not ready, returns the missing parts, one in each line.
    fn ready(&self) -> Result<String, Vec<String>>;

    /// Returns the last inputs, plan and decisions of an object, or the reason why the operator has no record of the
    /// object.
    fn explain(&self, kind: String, namespace: String, name: String) -> BoxFuture<'static, Result<Value, String>>;
}
