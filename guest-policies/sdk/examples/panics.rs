//! A policy that panics, built with the standard library.

extern crate alloc;

#[path = "panics/policy.rs"]
mod policy;

kaos_policy_sdk::export_policy!(policy::Panics);
