//! The library for authors of KAOS policies.
//!
//! Implement [`Policy`] (five plain functions) or [`Overlay`] (four functions, three with a default), and pass the type
//! to [`export_policy!`] or [`export_overlay!`]. The rest of the crate helps you to write these functions:
//!
//! | to | use |
//! |---|---|
//! | read the object, its settings and the objects that the host found | [`SubjectExt`], [`Object`], [`Lookup`] |
//! | decode a spec or settings with serde's derive | [`Object::read`], [`SubjectExt::read_settings`] |
//! | ask for other objects | [`need`] |
//! | read a value once for all functions of a pass | [`types::Subject::once`] |
//! | find duplicates in long lists | [`Places`] |
//! | build the mapping of environment variables | [`mod@env`] |
//! | merge a user's partial pod spec into the policy's | [`patch`] |
//! | declare where the values of a manifest come from | [`plan::Child`] |
//! | answer: refusals, gates, notes, conditions, plans | [`refusal`], [`blocker`], [`note`], [`condition`], [`plan`] |
//! | print a value while you write a policy | [`note::debug`] |
//! | find live children, and count their pods | [`ObservationExt`], [`Rollout`] |
//! | change the plan of the policy below | [`amend`] |
//! | put text into YAML or a shell command | [`quote`] |
//! | make and check names | [`names`] |
//! | read quantities and durations | [`quantity`], [`duration`] |
//! | put a JSON file into the component | [`include_json!`] |
//! | parse YAML | [`yaml`] |
//! | test a policy in a few lines | [`testing`] |
//!
//! `examples/banner.rs` is a complete policy. `examples/region.rs` is an overlay that changes variables.
//! `examples/sidecar.rs` and `examples/placement.rs` are overlays that change plans. These examples have tests. The
//! core of a policy looks like this:
//!
//! ```
//! use kaos_policy_sdk::types::{EnvVar, Plan, Refusal, Subject};
//! use kaos_policy_sdk::{SubjectExt, plan, refusal, testing};
//! use serde_json::json;
//!
//! fn translate(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
//!     let object = subject.object();
//!     let Some(text) = object.str_at(&["spec", "text"]) else {
//!         return Err(refusal::invalid("spec.text", "is required; say what the banner shows"));
//!     };
//!     let metadata = json!({"name": object.name(), "namespace": object.namespace()});
//!     let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}});
//!     Ok(plan::of(&[config.into()], env))
//! }
//!
//! let subject = testing::subject(&json!({"metadata": {"name": "b"}, "spec": {"text": "hello"}})).build();
//! let plan = translate(&subject, Vec::new()).unwrap();
//! assert_eq!(testing::manifest(&plan, "ConfigMap").str_at(&["data", "text"]), Some("hello"));
//! assert!(translate(&testing::subject(&json!({})).build(), Vec::new()).is_err());
//! ```
#![cfg_attr(all(target_arch = "wasm32", target_os = "unknown"), no_std)]

#[macro_use]
extern crate alloc;

pub mod amend;
/// The generated bindings, with one module for each world. [`types`] exports the parts that authors need.
#[doc(hidden)]
pub mod bindings {
    pub use kaos_policy_bindings_overlay as overlay;
    pub use kaos_policy_bindings_policy as policy;
}
#[cfg(any(test, all(target_arch = "wasm32", target_os = "unknown")))]
mod bytes;
/// The records of the contract, as the host and the component exchange them.
#[doc(hidden)]
pub mod contract {
    pub use crate::bindings::policy::kaos::policy::types::*;
}
/// Items for the code that `Decode` generates.
#[doc(hidden)]
pub mod decode {
    pub use kaos_decode::{Decode, Error, Fields, Value, variant};
}
mod deserialize;
pub mod duration;
pub mod env;
mod export;
#[cfg(any(test, all(feature = "heap", target_arch = "wasm32", target_os = "unknown")))]
mod heap;
pub mod json;
mod kept;
mod minify;
pub mod names;
pub mod need;
mod object;
#[cfg(any(test, target_arch = "wasm32"))]
mod panics;
pub mod patch;
mod places;
pub mod plan;
pub mod quantity;
pub mod quote;
mod say;
mod seen;
mod subject;
#[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
pub mod testing;
pub mod types;
pub mod yaml;

#[doc(hidden)]
pub use alloc::vec::Vec as __Vec;
#[doc(hidden)]
pub use export::__contract_bytes;
pub use export::{CONTRACT_VERSION, Overlay, Policy};
pub use kaos_decode::sdk::Decode;
pub use kaos_decode::{Error as DecodeError, Path, decode};
#[doc(hidden)]
pub use kept::Pass as __Pass;
#[doc(hidden)]
pub use minify::{__minified, __minified_len};
pub use need::NeedExt;
pub use object::Object;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub use panics::tell as __tell_panic;
pub use places::Places;
pub use say::{Violations, blocker, condition, note, refusal};
pub use seen::{ObservationExt, Rollout};
pub use subject::{Lookup, SubjectExt};
