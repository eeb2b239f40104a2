//! Rust traits for the WIT world `overlay`. The traits use the types of the crate for the WIT world `policy`.
#![cfg_attr(all(target_arch = "wasm32", target_os = "unknown"), no_std)]
#![allow(clippy::all, clippy::pedantic)]

wit_bindgen::generate!({
    path: "wit",
    world: "overlay",
    pub_export_macro: true,
    export_macro_name: "export_overlay_world",
    default_bindings_module: "kaos_policy_sdk::bindings::overlay",
    with: { "kaos:policy/types@0.1.0": kaos_policy_bindings_policy::kaos::policy::types },
});
