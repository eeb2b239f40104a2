//! Field ownership: server-side apply with managed fields, and the strategic merge patch of built-in kinds.
//!
//! The rules are the same as in Kubernetes' structured merge. Managers own fields. An apply that would change a field
//! of another manager conflicts. A field that its manager no longer applies is removed unless another manager owns it.
//! [`managers`] is the entry point for apply and for all other writes; the other modules are the steps.

mod collect;
mod compare;
mod element;
pub(crate) mod managers;
mod merge;
mod remove;
mod set;
mod shape;
pub(crate) mod strategic;

pub(crate) use managers::{Managed, Manager};
pub(crate) use set::FieldSet;
