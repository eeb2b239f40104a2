//! The policy of `panics.rs` without the standard library. The default policies also have no standard library.
#![cfg_attr(all(target_arch = "wasm32", target_os = "unknown"), no_std)]

extern crate alloc;

#[path = "panics/policy.rs"]
mod policy;

kaos_policy_sdk::export_policy!(policy::Panics, no_std);
