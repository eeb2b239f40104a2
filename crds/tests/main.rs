//! Tests the CustomResourceDefinitions, and which objects the definitions accept.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "that is how tests fail")]

mod acceptance;
mod definitions;
