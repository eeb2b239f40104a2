//! Rust types for the WIT world `policy`, and for all types of the contract.
//!
//! Each WIT world needs a crate of its own, because the names of the generated export macros are global to a crate.
#![cfg_attr(all(target_arch = "wasm32", target_os = "unknown"), no_std)]
#![allow(clippy::all, clippy::pedantic)]

extern crate alloc;

mod defaults;

wit_bindgen::generate!({
    path: "wit",
    world: "policy",
    pub_export_macro: true,
    export_macro_name: "export_policy_world",
    default_bindings_module: "kaos_policy_sdk::bindings::policy",
    additional_derives: [PartialEq, Clone],
    generate_all,
});
