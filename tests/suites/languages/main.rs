//! Tests policies in Go and Python, whose compilers no other suite needs. Each project that `policy new` makes builds
//! outside of this repository, and its policy answers like the policy in Rust. `tests/run languages` installs
//! componentize-py and runs the suite, which needs Go.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "that is how tests fail")]

mod built;
mod components;
mod costs;
mod hostile;
mod mcpserver;
mod overlay;
mod project;
mod python;
mod template;
