//! The parts of the API that only kubectl uses: tables, OpenAPI and protobuf. The feature `kubectl` enables these
//! parts.
//!
//! Without the feature, the cluster sends whole objects instead of tables. The answer to a request with a protobuf body
//! has status 415, and the answer to a request for OpenAPI has status 404.

pub(super) mod openapi;
pub(super) mod protobuf;
mod table;

pub(crate) use table::render as render_table;
