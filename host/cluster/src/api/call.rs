//! A request that was understood, and what it is answered against.

use bytes::Bytes;

use super::{Options, route::Target};
use crate::{access::Access, faults::Verb};

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
