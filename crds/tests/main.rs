//! Tests of the definitions and of the objects that they accept.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "that is how tests fail")]

mod acceptance;
mod definitions;
