//! The code that policies for kinds with a Deployment share. The crate has no code for a particular kind.
//!
//! | to | use |
//! |---|---|
//! | name children, label them, find their address | [`Kind`], [`Workload`], [`Extra`] |
//! | have the same settings as other policies | [`settings`]; `shape` and `schema` to declare them |
//! | refuse objects that are too large for a pass | [`bounds`] |
//! | build the Deployment, with `container` and `podSpec` merged into it | [`PodDefaults`], [`PodParts`] |
//! | build Service and HTTPRoute | [`Exposure`] |
//! | protect route and pods | [`security`] |
//! | merge telemetry and map its variables | [`Telemetry`] |
//! | check whether a ModelAPI offers a model | [`models`] |
//! | wait for other objects | [`Dependencies`] |
//! | look up an entry of a registry | [`Registry`] |
//! | handle deprecated fields | [`notes`], [`container()`] |
//! | read the finalizer from the settings | [`finalizer()`] |
//! | report phase, counts, endpoint and conditions | [`mod@assess`] |
//!
//! Each policy decides what an object means, which variables its pods get, and on which other objects the object
//! depends.
#![cfg_attr(all(target_arch = "wasm32", target_os = "unknown"), no_std)]

#[macro_use]
extern crate alloc;

use alloc::{borrow::ToOwned, string::String};

pub mod assess;
pub mod bounds;
mod checks;
pub mod dependencies;
mod deployment;
mod expose;
mod kind;
mod lists;
pub mod models;
pub mod notes;
mod older;
mod rare;
mod registry;
mod rollout;
#[cfg(feature = "schema")]
pub mod schema;
pub mod security;
pub mod settings;
#[cfg(feature = "schema")]
pub mod shape;
mod telemetry;

pub use assess::{Assessment, Phase};
pub use dependencies::Dependencies;
pub use deployment::{Deployment, PodDefaults, PodParts};
pub use expose::Exposure;
pub use kind::{Extra, Kind, ROUTE_API, ROUTE_KIND, Workload};
pub use older::{OwnContainer, container};
pub use rare::{LeftOut, Rare};
pub use registry::Registry;
pub use rollout::Rollout;
pub use telemetry::Telemetry;

/// Returns the finalizer in the text of the setting, or `None` if the text is empty (the default).
pub fn finalizer(setting: &str) -> Option<String> {
    (!setting.is_empty()).then(|| setting.to_owned())
}
