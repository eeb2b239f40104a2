//! Tests policies in Go and Python. No other suite needs the compilers of these languages. Each project of `policy new`
//! must build outside of this repository, and its policy must answer like the policy in Rust. `tests/run languages`
//! installs componentize-py and runs the suite, which needs Go.
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
