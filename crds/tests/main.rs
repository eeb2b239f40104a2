//! Tests the generated CustomResourceDefinitions, and which objects an API server accepts with them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "that is how tests fail")]

mod acceptance;
mod definitions;
