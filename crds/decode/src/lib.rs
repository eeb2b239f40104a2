//! Decodes JSON values to typed structs, with the exact path in every error.
//!
//! A serde visitor adds kilobytes to a Wasm component for each struct. In this crate, code that does not depend on the
//! type exists only once, and `#[derive(Decode)]` adds one call for each field. The derive reads serde's own
//! attributes. So a type declares its names and defaults only once, even if the type is also serialized or has a
//! schema.
//!
//! Decoding treats a null in a struct as absent, as an API server does. Decoding ignores unknown fields, except if the
//! type has `deny_unknown_fields`.
//!
//! ```
//! use kaos_decode::{Decode, decode};
//! use serde_json::json;
//!
//! #[derive(Decode)]
//! #[serde(rename_all = "camelCase")]
//! struct Server {
//!     image: String,
//!     container_port: Option<u16>,
//! }
//!
//! let server: Server = decode(&json!({"image": "i", "containerPort": null})).unwrap();
//! assert_eq!((server.image.as_str(), server.container_port), ("i", None));
//! let wrong = decode::<Server>(&json!({"image": "i", "containerPort": "http"})).err().unwrap();
//! assert_eq!(wrong.to_string(), "containerPort: must be a whole number from 0 to 65535, not string \"http\"");
//! ```
#![cfg_attr(all(target_arch = "wasm32", target_os = "unknown"), no_std)]

#[macro_use]
extern crate alloc;

mod decoding;
mod error;
mod fields;
mod path;
mod shown;
mod values;

pub use decoding::{Decode, decode};
pub use error::Error;
pub use fields::{Fields, variant};
pub use kaos_decode_derive::Decode;
pub use path::Path;
pub use serde_json::Value;
pub use shown::{SHOWN, shown};

/// The trait and the derive, for crates that use `kaos_decode` only through the policy SDK.
#[doc(hidden)]
pub mod sdk {
    pub use crate::decoding::Decode;
    pub use kaos_decode_derive::SdkDecode as Decode;
}
