//! Rust types for the WIT world `script-engine`. `serde` converts them from and to the script's values.
#![allow(clippy::all, clippy::pedantic, missing_docs, unreachable_pub)]

wit_bindgen::generate!({
    path: "../../wit",
    world: "script-engine",
    additional_derives: [serde::Serialize, serde::Deserialize],
});

pub(crate) use kaos::policy::types;
