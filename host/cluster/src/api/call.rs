//! A request that was understood, and what is answered to it.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde_json::Value;

use super::{Options, Watch, route::Target};
use crate::{access::Access, catalogue::Resource, faults::Verb};

/// A request.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) verb: Verb,
    pub(crate) target: Target,
    pub(crate) options: Options,
    pub(crate) content_type: String,
    pub(crate) accept: String,
    pub(crate) user: String,
    pub(crate) program: String,
    pub(crate) body: Bytes,
}

/// What a request is answered against besides the state.
pub(crate) struct Context<'a> {
    /// The time, as the API writes it.
    pub(crate) now: &'a str,
    /// How many changes back reads look, for stale answers.
    pub(crate) back: u64,
    /// Who may do what, for access reviews.
    pub(crate) access: &'a Access,
}

/// An answer.
#[derive(Debug)]
pub(crate) enum Answer {
    /// One object.
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
    /// Anything else that is JSON.
    Document(Value),
    /// Discovery in one document.
    Discovery(Value),
    /// A plain text.
    Text(String),
}

impl Answer {
    /// An object of any other kind, such as a `Scale` or a `Status`.
    pub(crate) fn value(value: Value) -> Self {
        Self::Document(value)
    }
}
