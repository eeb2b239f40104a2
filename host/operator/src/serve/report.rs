//! The source of the pages.

use futures_util::future::BoxFuture;
use serde_json::Value;

/// The source of the pages.
pub trait Report: Send + Sync + 'static {
    /// Returns a word about readiness, or the missing parts, one a line.
    fn ready(&self) -> Result<String, Vec<String>>;

    /// Returns the last inputs, plan and decisions of an object, or the reason why there are none.
    fn explain(&self, kind: String, namespace: String, name: String) -> BoxFuture<'static, Result<Value, String>>;
}
