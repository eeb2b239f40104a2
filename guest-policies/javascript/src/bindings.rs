//! Rust types for the WIT world `script-engine`. The engine converts the records with `serde`.
#![allow(clippy::all, clippy::pedantic, missing_docs, unreachable_pub)]

wit_bindgen::generate!({
    path: "../../wit",
    world: "script-engine",
    additional_derives: [serde::Serialize, serde::Deserialize],
});

pub(crate) use kaos::policy::types;
