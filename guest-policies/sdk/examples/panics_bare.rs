//! The same policy without the standard library, as the default policies are built.
#![cfg_attr(all(target_arch = "wasm32", target_os = "unknown"), no_std)]

extern crate alloc;

#[path = "panics/policy.rs"]
mod policy;

kaos_policy_sdk::export_policy!(policy::Panics, no_std);
