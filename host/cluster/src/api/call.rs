//! A parsed request, and the other inputs from which the API computes the answer to the request.

use bytes::Bytes;

use super::{Options, route::Target};
use crate::{access::Access, faults::Verb};

/// A parsed request.
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

/// The inputs from which the API computes an answer, except the request and the state.
pub(crate) struct Context<'a> {
    /// The time in the API's format.
    pub(crate) now: &'a str,
    /// The number of latest changes that a stale read does not see.
    pub(crate) back: u64,
    /// How the cluster decides whether a user may send a request. Access reviews need this value.
    pub(crate) access: &'a Access,
}
