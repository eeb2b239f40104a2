//! Answers to requests, before they are serialized.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use super::Watch;
use crate::catalogue::Resource;

/// The answer to a request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The answer is one object.
    Object { code: StatusCode, object: Arc<Value>, resource: Arc<Resource>, warnings: Vec<String> },
    /// A page of objects.
    List {
        items: Vec<Arc<Value>>,
        revision: u64,
        next: Option<String>,
        remaining: Option<usize>,
        resource: Arc<Resource>,
    },
    /// A stream of changes.
    Watch(Watch),
    /// Any other JSON document.
    Document(Value),
    /// Aggregated discovery: one JSON document that lists all groups, versions and resources.
    Discovery(Value),
    /// A plain text.
    Text(String),
}

impl Answer {
    /// Answers with an object that the cluster does not store, such as a `Scale` or a `Status`.
    pub(crate) fn value(value: Value) -> Self {
        Self::Document(value)
    }
}
