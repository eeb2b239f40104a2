//! Policies that are installed while the operator runs: from a ConfigMap into service, and out of it again.
//!
//! | module | what it shows |
//! |---|---|
//! | `swapping` | what is applied comes into service, and what does not change anything writes nothing |
//! | `refusing` | what is wrong is refused with its reason, and disturbs nothing |
//! | `last_good` | what fails in service is put aside, and stays so |
//! | `places` | namespaces, pins, precedence |
//! | `packages` | half-written, emptied, renamed and deleted ConfigMaps |
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "that is how tests fail")]

mod last_good;
mod packages;
mod places;
mod refusing;
mod support;
mod swapping;
