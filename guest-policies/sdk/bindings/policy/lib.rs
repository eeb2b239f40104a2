//! World `policy` as Rust types, and all types of the contract.
//!
//! This world has its own crate: the generated export macros are global to a crate, so two worlds need two crates.
#![cfg_attr(all(target_arch = "wasm32", target_os = "unknown"), no_std)]
#![allow(clippy::all, clippy::pedantic)]

extern crate alloc;

mod defaults;

wit_bindgen::generate!({
    path: "../../../../wit",
    world: "policy",
    pub_export_macro: true,
    export_macro_name: "export_policy_world",
    default_bindings_module: "kaos_policy_sdk::bindings::policy",
    additional_derives: [PartialEq, Clone],
    generate_all,
});
