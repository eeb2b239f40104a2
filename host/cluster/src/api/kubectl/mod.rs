//! The parts of the API that only kubectl uses (the feature `kubectl`).
//!
//! Without them, the cluster answers like a server that does not know them: whole objects instead of tables, 415 for
//! protobuf bodies, 404 for OpenAPI.

pub(super) mod openapi;
pub(super) mod protobuf;
mod table;

pub(crate) use table::render as render_table;
