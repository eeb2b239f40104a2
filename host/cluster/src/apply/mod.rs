//! Who owns which field: server-side apply with managed fields, and the strategic merge patch of built-in kinds.
//!
//! The rules are those of Kubernetes' structured merge: fields are owned by managers, an apply that would change
//! another's field conflicts, and what a manager no longer applies disappears unless somebody else owns it.
//! [`managers`] is the entrance for apply and for every other write; the rest are the steps.

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
