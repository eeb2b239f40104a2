//! Field ownership: server-side apply with managed fields, and the strategic merge patch of built-in kinds.
//!
//! The rules are those of `structured-merge-diff`, the library of the real API server. Managers own fields. An apply
//! that would change a field of another manager fails with a conflict. If a manager no longer applies a field, the
//! server removes the field, unless another manager owns the field. [`managers`] is the entry point for apply and for
//! all other writes. The other modules implement the steps of an apply.

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
