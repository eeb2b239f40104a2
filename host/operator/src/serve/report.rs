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

    /// Returns the list of the recorded decisions, or the reason why there is none.
    fn decisions(&self) -> Result<Value, String>;

    /// Returns the list of the recorded decisions about an object, or the reason why there is none.
    fn decisions_of(&self, kind: &str, namespace: &str, name: &str) -> Result<Value, String>;

    /// Returns a recorded decision, or the reason why the operator does not have it.
    fn decision(&self, id: String) -> BoxFuture<'static, Result<Value, String>>;
}
