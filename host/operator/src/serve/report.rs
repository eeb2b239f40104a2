//! Provides the content of the pages that the operator serves.

use futures_util::future::BoxFuture;
use serde_json::Value;

/// Provides the content of the pages.
pub trait Report: Send + Sync + 'static {
    /// Returns a text if the operator is ready. Otherwise, returns what is still missing, as lines of text.
    fn ready(&self) -> Result<String, Vec<String>>;

    /// Returns the last inputs, plan and decisions of an object, or the reason why the operator has no record of the
    /// object.
    fn explain(&self, kind: String, namespace: String, name: String) -> BoxFuture<'static, Result<Value, String>>;

    /// Returns the list of the recorded decisions, or the reason why there is no list.
    fn decisions(&self) -> Result<Value, String>;

    /// Returns the list of the recorded decisions about an object, or the reason why there is no list.
    fn decisions_of(&self, kind: &str, namespace: &str, name: &str) -> Result<Value, String>;

    /// Returns a recorded decision, or the reason why the operator does not have it.
    fn decision(&self, id: String) -> BoxFuture<'static, Result<Value, String>>;
}
