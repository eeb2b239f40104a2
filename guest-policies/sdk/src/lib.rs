//! Everything a KAOS policy is written with.
//!
//! Implement [`Policy`] (five plain functions) or [`Overlay`] (three), and name the type in
//! [`export_policy!`] or [`export_overlay!`]. The rest of the crate is what those functions need.

/// The generated bindings, one module a world; [`types`] has what authors need of them.
#[doc(hidden)]
pub mod bindings {
    pub use kaos_policy_bindings_overlay as overlay;
    pub use kaos_policy_bindings_policy as policy;
}
mod export;
pub mod types;

#[doc(hidden)]
pub use export::__contract_bytes;
pub use export::{CONTRACT_VERSION, Overlay, Policy};
