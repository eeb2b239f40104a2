//! The parts of the API that only kubectl uses: tables, OpenAPI and protobuf. The feature `kubectl` enables these
//! parts.
//!
//! Without the feature, the cluster sends whole objects instead of tables, 415 for protobuf bodies, and 404 for
//! OpenAPI.

pub(super) mod openapi;
pub(super) mod protobuf;
mod table;

pub(crate) use table::render as render_table;
