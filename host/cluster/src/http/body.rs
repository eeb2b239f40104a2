//! The bodies of responses and requests. A request's body has a maximum size.

use std::{convert::Infallible, error::Error};

use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited, combinators::UnsyncBoxBody};

use crate::status::ApiError;

/// The body of a response.
pub type Body = UnsyncBoxBody<Bytes, Disconnected>;

/// The error for a connection that a fault broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the connection was broken")]
pub struct Disconnected;

impl From<Infallible> for Disconnected {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// The maximum size of a request's body in bytes, as on a real server.
const MAX_BODY_BYTES: usize = 3 << 20;

/// Reads a body. Returns `None` if the body is too large.
pub(super) async fn read<B>(body: B) -> Result<Option<Bytes>, Box<dyn Error + Send + Sync>>
where
    B: http_body::Body,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    match Limited::new(body, MAX_BODY_BYTES).collect().await {
        Ok(whole) => Ok(Some(whole.to_bytes())),
        Err(error) if error.is::<LengthLimitError>() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the error for a body that is too large.
pub(super) fn too_large() -> ApiError {
    ApiError::too_large(&format!("limit is {MAX_BODY_BYTES}"))
}
